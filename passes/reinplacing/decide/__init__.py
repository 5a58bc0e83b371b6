"""Deciding: the conditions of legality, one forward decision, and the cheapest of several.

Knows models and decisions. Must not know how a rewrite is written, nor Inductor.
"""
