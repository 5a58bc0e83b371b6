"""One entry of a corpus: its file, its program built and run, and what that showed.

It must not know pytest's items nor how an entry is timed.
"""
