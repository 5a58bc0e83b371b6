"""One callable called: compiled afresh, beside its eager twin, with its tensors put back, its peak measured.

It must not know where the callable comes from nor what is expected of it.
"""
