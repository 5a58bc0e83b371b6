"""A session of pytest: its options, tests and entries, the capture of each, what is made of all.

It must not know the plugin itself: hooks, options and fixtures, which only call what is here.
"""
