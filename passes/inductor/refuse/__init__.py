"""Writes in place that Inductor would lose or misorder: refused while the graph is decided.

Knows decisions and what Inductor fuses. Must not know how a graph is changed.
"""
