"""Two reports beside each other, and by how much a figure may grow.

It must not know which run the reports are of nor what a run makes of the verdict.
"""
