"""Reinforcement learning on the device: memories, priorities and returns that are written in place.

Knows one structure a file. Must not know an agent or its environment, or the other packages.
"""
