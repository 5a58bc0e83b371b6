"""One step of a decoder, or of a stream, whose caches and states outlive the call.

Knows models. Must not know serving engines: what these do to a cache is in ``serving/``.
"""
