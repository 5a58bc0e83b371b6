"""Random functional graphs and programs, and operators that punish a wrong decision.

Knows how graphs are made. Must not know what any pass makes of them.
"""
