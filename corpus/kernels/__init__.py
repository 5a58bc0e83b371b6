"""User Triton kernels that write in place, each beside the program that launches it.

Importing a program needs no Triton; importing a kernel does, and nothing else may know how it is written.
"""
