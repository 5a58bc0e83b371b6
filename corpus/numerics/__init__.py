"""Linear algebra and transforms in place: solves, factorizations, iterations, shortest paths.

Knows one algorithm a file. Must not know what its matrices stand for, or the other packages.
"""
