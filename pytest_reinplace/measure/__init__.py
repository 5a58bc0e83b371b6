"""Entries measured: all sides timed in turn, held against baselines, the baselines recorded.

It must not know how an entry is collected as a test and reported: a session does.
"""
