"""Programs that go along a sequence and write a row a step: dynamic programming and recurrent networks.

Knows one recurrence a file. Must not know the models whose scores it is given, or the other packages.
"""
