"""pytest-reinplace: a pytest plugin that asserts, explains and gates reinplacing."""

from .program import Program

__all__ = ["Program"]
