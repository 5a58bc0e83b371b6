"""Simulations that step a state in place: stencils, lattices, waves, particles, cloth.

Knows one method a file. Must not know how its equations are discretized elsewhere, or the other packages.
"""
