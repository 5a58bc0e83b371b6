"""One place where a pass changed a graph."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import applied
from ..verify.finding import Finding


@dataclasses.dataclass(frozen=True, slots=True)
class Application:
    """One place where a rule fired, or all that a pass without rules changed.

    Args:
        number: its position in the ledger, from 0.
        stage: ``"joint"``, ``"post_grad"``, or what the pipeline is called; empty where it has no name.
        pass_name: the pass, as the pipeline calls it; ``"(between passes)"`` where the graph changed while no
            pass was running.
        rule: the rule, as the pattern matcher knows it; empty where the pass is not made of rules.
        node: the node that was matched; of a pass without rules the first that it removed, changed or made.
        source: the line of that node in the user's program, ``"file:line"``; ``None`` where it is not known.
        nodes: how many nodes the graph has more afterwards; negative where it has fewer.
        copies_added: the copies that it brought, by their labels, in the order of the graph.
        copies_removed: the copies that it took away.
        copy_bytes: how many more bytes are copied afterwards; sizes that are symbols count by their hints.
        seconds: how long it took.
        finding: what checking it has found; ``None`` where it was not checked.
    """

    number: int
    stage: str
    pass_name: str
    rule: str
    node: str
    source: str | None
    nodes: int
    copies_added: tuple[str, ...]
    copies_removed: tuple[str, ...]
    copy_bytes: int
    seconds: float
    finding: Finding | None = None

    @property
    def name(self) -> str:
        """The pass, and the rule in it."""
        return applied.name_of(self.to_dict())

    @property
    def is_wrong(self) -> bool:
        """Whether it broke the contract."""
        return self.finding is not None and self.finding.is_different

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        found = dataclasses.asdict(self)
        found["pass"] = found.pop("pass_name")
        return found

    def __str__(self) -> str:
        return applied.told(self.to_dict())
