"""Our passes inside Inductor, by its public hooks, and what it takes to be right there.

Knows what Inductor makes of a graph. Nothing below it may know that.
"""
