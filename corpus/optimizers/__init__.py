"""Optimizers as users write them from papers, and as libraries ship them: states and weights in place.

Knows one optimizer a file; what they optimize is in ``weights``. Must not know the other packages.
"""
