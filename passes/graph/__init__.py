"""Any FX graph: is it one, what views what, what may move, new nodes, and changing it whole or not at all.

Knows graphs of any pass, functional or not. Must not know candidates, decisions or Inductor.
"""
