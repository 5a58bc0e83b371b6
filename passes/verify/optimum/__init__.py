"""The fewest bytes that any legal rewrite of a small graph copies, found by trying every set of candidates.

Reads graphs by itself, apart from the pass on purpose: a mistake in one must show in the other.
"""
