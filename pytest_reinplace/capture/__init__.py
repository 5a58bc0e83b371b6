"""Compilations as they happen: the pass under test put in place, each graph seen, judged and checked.

It knows Inductor and Dynamo, and must not know pytest nor why somebody compiles.
"""
