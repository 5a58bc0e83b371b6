"""The command line ``pytest-reinplace``: what is done with reports outside pytest.

It stands above all others, and none of them may know it.
"""
