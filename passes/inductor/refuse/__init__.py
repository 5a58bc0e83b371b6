"""Writes in place that Inductor would lose: refused while the graph is decided.

Knows decisions and what Inductor makes of a write. Must not know how a graph is changed.
"""
