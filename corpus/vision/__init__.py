"""Images: augmentation, pasting, splatting, suppression, masks, written in place as data pipelines do.

Knows one operation a file. Must not know the network that the images go to, or the other packages.
"""
