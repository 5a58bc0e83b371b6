"""One copy that lowering made, as plain data, and how it is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from . import wording

CAUSES: dict[str, str] = {
    "strides": "{op} asks for other strides",
    "output": "a result has to have the strides that it has without Inductor",
    "readers": "Inductor chose other strides for those who read it",
    "concat": "it already has a place of its own, so {op} copies it",
    "again": "the program copies once, Inductor for each reader",
    "loop": "what the body returns has to lie as the loop's operand does",
    "aliased operands": "two operands of the loop are one tensor",
    "subgraph": "a subgraph takes it with the strides that it was traced with",
    "device": "it is moved to another device",
    "write": "it is computed apart, and then copied into what {op} writes",
    "no turn": "a loop that makes no turn returns copies, as it does without Inductor",
    "program": "the program says so",
    "unknown": "why is not known",
}
"""Why a copy is made, each with its sentence. ``no turn`` and ``program`` are meant by the program."""


@dataclasses.dataclass(frozen=True, slots=True)
class LoweringCopy:
    """A buffer in Inductor's IR that only holds what another one holds.

    Args:
        label: ``<op>.<argument>`` of the call that it is made for, or ``<op>.output`` for a call's result.
        nbytes: the bytes that are copied; of symbolic sizes, by their hints.
        cause: one of ``CAUSES``.
        buffer: its name in Inductor's IR and in the generated code.
        of: the name of what is copied, in the IR, too.
        node: the FX node that it is made for; empty where that is not known.
        value: the FX node whose value is copied; empty where that is not known.
        source: the line of ``node`` in the user's program.
        device: where it lies.
        meant: whether the program itself copies there, so that lowering added nothing.
        graph: the subgraph that it is in, empty for the graph itself.
        hint: what helps against it, empty where nothing is known.
    """

    label: str
    nbytes: int
    cause: str
    buffer: str
    of: str
    node: str = ""
    value: str = ""
    source: str | None = None
    device: str = "cpu"
    meant: bool = False
    graph: str = ""
    hint: str = ""

    @property
    def sentence(self) -> str:
        """Why it is made; a report of a newer version may have causes that are not known here."""
        op = self.label.partition(".")[0]
        return CAUSES.get(self.cause, CAUSES["unknown"]).format(op=op)

    def lines(self) -> list[str]:
        """Return what there is to know: label, bytes and cause, and what helps below it."""
        place = f" at {self.source}" if self.source else ""
        inside = f" of {self.graph}" if self.graph else ""
        what = f"{self.buffer}{inside} copies {self.of}" + (f" ({self.value})" if self.value else "")
        node = f", node {self.node}" if self.node else ""
        size = wording.bytes_of(self.nbytes)
        first = f"{self.label}: {size}, {self.cause}: {self.sentence}; {what}{node}{place}"
        return [first, *([f"  hint: {self.hint}"] if self.hint else [])]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LoweringCopy:
        """Return what ``to_dict`` gave; raises ``KeyError`` or ``TypeError``."""
        return cls(**{field.name: data[field.name] for field in dataclasses.fields(cls)})
