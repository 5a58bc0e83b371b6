"""Sound, mostly as it streams in: filters, delays, overlapping frames, with their states kept in place.

Knows one process a file. Must not know what the sound is used for, or the other packages.
"""
