"""Decoder stacks and samplers as serving engines compile them, of custom operators.

Knows operators and their schemas. Must not know any engine: nothing of one is imported.
"""
