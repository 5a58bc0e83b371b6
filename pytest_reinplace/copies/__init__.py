"""The copies that Inductor's lowering makes of values that already have a place: which, why, for which line.

It looks at the IR after its code was generated, and notes while it is lowered why a copy is made. It must not
know pytest.
"""
