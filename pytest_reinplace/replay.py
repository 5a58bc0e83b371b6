"""What the programs that ``--reinplace-verify`` writes import: they outlive the version that wrote them."""

from .capture.replay import load, main

__all__ = ["load", "main"]
