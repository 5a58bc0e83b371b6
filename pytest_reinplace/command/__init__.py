"""The command line ``pytest-reinplace``: what is done with reports outside pytest."""
