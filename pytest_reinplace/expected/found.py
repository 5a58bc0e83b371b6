"""What came where a file says what is expected: data that workers hand to their controller."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

GRAPH = ".graph"  # the ending of a file that holds the text of a graph, and nothing else


class ListError(Exception):
    """A list or a graph cannot be rewritten. The message says what was expected, and what came."""


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """One comparison.

    Args:
        file: the file of the list, absolute, no link.
        place: where the list is: ``"line:column"`` in Python, the dotted key in YAML; empty for a graph.
        expected: the labels that it holds; the text of a graph, if there is one.
        came: the labels that came, in their order; the text of a graph.
        digest: of the file's bytes when the list was looked for.
        problem: why the list cannot be rewritten; empty where it can.
    """

    file: str
    place: str
    expected: tuple[str, ...]
    came: tuple[str, ...]
    digest: str = ""
    problem: str = ""

    @property
    def differs(self) -> bool:
        """Whether something else came; the order means nothing."""
        return sorted(self.expected) != sorted(self.came)

    @property
    def key(self) -> tuple[str, str]:
        """Which list it is."""
        return self.file, self.place

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Found:
        """Return what :meth:`to_dict` gave, read back from JSON."""
        return cls(**{**data, "expected": tuple(data["expected"]), "came": tuple(data["came"])})


def digest(data: bytes) -> str:
    """Return by what a file is known to be the same."""
    return hashlib.sha256(data).hexdigest()
