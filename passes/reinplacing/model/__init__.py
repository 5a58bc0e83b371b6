"""Building the model of a graph: one walk that places every value and notes every read, write and candidate.

Knows which kind sees to which node. Must not know decisions.
"""
