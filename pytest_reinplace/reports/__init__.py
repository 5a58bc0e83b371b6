"""The reports. Each is made of one JSON-ready document and of nothing else.

They must not know the session that the document is of.
"""
