"""One bar of a picture of memory: something that is held, from one position of a program to another."""

from __future__ import annotations

import dataclasses
from typing import Literal

from ..base.wording import bytes_of

Kind = Literal["value", "copy", "clone", "outside", "input", "before"]

KINDS: dict[Kind, str] = {
    "value": "a value of the program",
    "copy": "a copy that Inductor's lowering adds",
    "clone": "a clone: what could be written in place is not",
    "outside": "what a call takes for itself while it runs",
    "input": "an input that nobody else holds, until the program releases it",
    "before": "held before the program began",
}
"""What a bar can be, each with its words."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """Something that is held.

    Args:
        kind: one of ``KINDS``.
        name: the variable that holds it first, or the operator that takes it.
        nbytes: its bytes.
        born: the position at which it is taken.
        freed: the position at which it is released; ``None`` where it outlives the program.
        held: the positions in whose highest level it is counted. Of several calls in one line only the one
            that takes most counts, so this may be empty.
        moments: when it is taken and released, as ``Allocation.moments`` counts; of a call that takes
            something for itself the moment at which its line holds most.
        later: the variables that hold the same storage later.
        nodes: the nodes of the graph that are computed into it.
        source: the user's line, empty where it is not known.
        line: the line of the program that takes it, from 1; 0 for what was there before.
        text: that line.
        why: of a copy or clone what it is made for; else empty.
    """

    kind: Kind
    name: str
    nbytes: int
    born: int
    freed: int | None
    held: range
    moments: tuple[int, int | None] = (0, None)
    later: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    source: str = ""
    line: int = 0
    text: str = ""
    why: str = ""

    @property
    def label(self) -> str:
        """Its name, and those that it has later."""
        return f"{self.name} (later {', '.join(self.later)})" if self.later else self.name

    @property
    def lives(self) -> str:
        """From which position to which it is held."""
        return f"{self.born}..{'end' if self.freed is None else self.freed}"

    @property
    def span(self) -> range:
        """The positions over which it is drawn; none where it lives within one line and never counts."""
        if self.kind == "outside":
            return range(self.born, self.born + 1)
        return self.held or range(self.born, self.born)

    @property
    def title(self) -> str:
        """All that there is to know, in one line."""
        told = [f"{self.label}: {bytes_of(self.nbytes)}, {KINDS[self.kind]}", f"positions {self.lives}"]
        told += [self.why] if self.why else []
        told += [f"nodes {', '.join(self.nodes)}"] if self.nodes else []
        told += [f"at {self.source}"] if self.source else []
        told += [f"line {self.line}: {self.text}"] if self.line else []
        return "; ".join(told)
