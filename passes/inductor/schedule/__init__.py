"""Kernels as Inductor's scheduler forms them: which operations may share one, and what each must read.

Knows what scheduled operations read and write. Must not know decisions, or what was put in place.
"""
