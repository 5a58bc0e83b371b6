"""Kernels as Inductor's scheduler forms them: which operations may share one.

Knows what scheduled operations read and write. Must not know FX graphs, decisions, or what was put in place.
"""
