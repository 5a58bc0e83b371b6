"""What tests reported, as plain data that needs no torch: written, read back and checked.

It must not know torch, nor how the data are shown.
"""
