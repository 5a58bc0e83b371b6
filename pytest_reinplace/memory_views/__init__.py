"""What a call holds as pictures: a page, a trace for Perfetto, a snapshot for torch's memory viewer.

This room draws what ``lowered`` and ``copies`` have found. It must not run or compile anything.
"""
