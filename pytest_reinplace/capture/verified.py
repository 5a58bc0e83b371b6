"""What checking one compiled graph gave."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Verified:
    """One graph that was checked, or was not.

    Args:
        graph: its id, ``"[fw 0/0]"``.
        status: ``"same"``, ``"different"`` or ``"not-checked"``.
        text: the first difference, or why it was not checked.
        node: the first node that computes something else, with its operator.
        source: its line in the user's program.
        stage: the stage of the post-grad passes that left the first wrong graph.
        pass_name: the pass of the user's, or the one under test, that ran there; empty for Inductor's own.
        program: a small program that shows the difference; empty where there is none.
        no_program: why there is none.
        nodes: how many operators that program calls.
    """

    graph: str
    status: str
    text: str = ""
    node: str = ""
    source: str | None = None
    stage: str = ""
    pass_name: str = ""
    program: str = ""
    no_program: str = ""
    nodes: int = 0

    @property
    def is_different(self) -> bool:
        """Whether the contract is broken."""
        return self.status == "different"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data, without the program."""
        names = ("status", "text", "node", "source", "stage")
        return {name: getattr(self, name) for name in names} | {"pass": self.pass_name}
