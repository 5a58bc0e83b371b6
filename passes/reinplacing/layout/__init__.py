"""Where values begin and how they are laid out, where fake tensors do not say or a write would change it.

Knows strides and offsets. Must not know why a candidate is accepted.
"""
