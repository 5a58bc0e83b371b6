"""The page: the report as HTML, one file that needs nothing but itself.

It must not know the session that the document is of, nor how the other reports are worded.
"""
