"""Bytes: which of a storage a tensor occupies, and exact answers to whether two such sets meet.

Knows sizes and strides, symbolic ones too. Must not know graphs, operators or torch's compiler.
"""
