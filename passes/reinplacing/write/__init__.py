"""The state and the primitives of one rewrite, which the kinds of candidates use to write theirs.

Knows what replaced which node. Must not know any one kind.
"""
