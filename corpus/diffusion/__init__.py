"""Diffusion of images: samplers with their histories, guidance, masks, tiles that are blended.

Knows one part of a pipeline a file. Must not know the other packages.
"""
