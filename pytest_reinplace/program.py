"""What a corpus entry's builder returns: the public place of its name."""

from .call.program import Program

__all__ = ["Program"]
