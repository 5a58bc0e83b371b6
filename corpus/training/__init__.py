"""Optimizer steps, gradients, running statistics, tables and codebooks that are updated in place.

Knows one step. Must not know data or loops around it.
"""
