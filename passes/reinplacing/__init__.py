"""The pass: a functional graph in, the same graph with writes in place out, whole or not at all.

Knows how a graph goes through its rooms, from ``run`` to ``rewrite``. Must not know Inductor: what will run
the graph is a ``Target`` that it is handed.
"""
