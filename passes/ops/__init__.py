"""Any one call: what an operator reads, writes and aliases, from its schema or from what was declared.

Knows one node at a time, and is the only place with tables of operator names. Must not know graphs around it,
nor what is decided.
"""
