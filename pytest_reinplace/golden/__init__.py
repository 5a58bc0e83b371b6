"""Graphs as text that stays the same while the graph does: files beside tests, and patterns of lines.

It must not know pytest, nor which pass made a graph.
"""
