"""Records: where values live, who reads them, candidates, a decision, and for whom the graph is written.

Knows what is known and how it is asked. Must not know how anything is found out or decided.
"""
