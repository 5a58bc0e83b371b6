"""Small programs in the idioms that larger ones are made of: tiles, skips, messages, loops, branches.

Knows one idiom a file. Must not know the models that use it.
"""
