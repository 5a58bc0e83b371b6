"""What tests reported, as plain data that needs no torch: written, read back and checked.

It must not know how the data were come by nor how they are shown.
"""
