"""What is shown of one graph: its lines, its live bytes, the bytes that it has to move.

It gives plain data, and must know neither a page nor a compilation.
"""
