"""Entries measured: all sides timed in turn, held against baselines, the baselines recorded.

It must not know the tests that ask for it; a session does.
"""
