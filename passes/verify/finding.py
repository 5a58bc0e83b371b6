"""What checking a compiled graph against its functional graph has found."""

from __future__ import annotations

import dataclasses
from typing import Literal

Status = Literal["same", "different", "not-checked"]


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Args:
        status: ``"same"``, ``"different"`` or ``"not-checked"``.
        text: the first difference, or why the graph was not checked; empty where both do the same.
        kind: what differs, as of ``EquivalenceError``; ``"rounding"`` where both do the same but for that.
        node: the first node that computes something else, and its operator, where it could be named.
        source: its line in the user's program, ``"file:line"``.
    """

    status: Status
    text: str = ""
    kind: str = ""
    node: str = ""
    source: str | None = None

    @classmethod
    def unchecked(cls, reason: str) -> Finding:
        """Return the finding of a graph that was not checked."""
        return cls("not-checked", reason)

    @property
    def is_unchecked(self) -> bool:
        """Whether nothing is known."""
        return self.status == "not-checked"

    @property
    def is_different(self) -> bool:
        """Whether the contract is broken."""
        return self.status == "different"
