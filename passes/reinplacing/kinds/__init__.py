"""The kinds of candidates, one a file: how one is found in a graph, and how it is written in place.

Knows one kind at a time. Must not know which candidates are accepted, nor why.
"""
