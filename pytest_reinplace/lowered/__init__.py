"""What Inductor made of each graph, below FX: which memory the generated program takes, and when.

This room runs the program that Inductor has written, with fake tensors and kernels that do nothing, and
sees every allocation. It must not know which pass rewrote the graph, nor why.
"""
