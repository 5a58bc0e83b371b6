"""Changes of a graph, before and after it is decided, without which Inductor computes something else.

Knows one defect a file. Must not know decisions.
"""
