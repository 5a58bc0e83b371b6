"""Passes held against many random graphs and programs, and the commands that do so.

Knows the contract, the optimum and the generator. Nothing imports it.
"""
