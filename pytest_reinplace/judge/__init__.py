"""What a pass did to one graph: the graph before and after it, and what became of each candidate.

It looks at graphs alone, and must not know how they were come by nor what is made of the report.
"""
