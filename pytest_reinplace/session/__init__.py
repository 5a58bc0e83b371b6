"""A session of pytest: its options, tests and entries, the capture of each, what is made of all.

It must not know the plugin, whose hooks and fixtures only call it.
"""
