"""How long reinplacing takes as graphs grow: our pass beside Inductor's own, in one run.

``make benchmark``, or ``pytest benchmarks`` in a checkout; not part of the test-suite.
"""
