"""The clone lists that tests and entries expect, in their files: found, and rewritten to what came.

It must not know pytest, nor how what came was judged.
"""
