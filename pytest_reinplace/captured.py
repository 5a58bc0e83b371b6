"""A graph that the fixtures hand out: the public place of its name."""

from .capture.captured import CapturedGraph

__all__ = ["CapturedGraph"]
