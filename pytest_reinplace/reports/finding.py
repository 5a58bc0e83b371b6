"""What is to be said of the graphs of a report: which are wrong, may be wrong, or were not looked at."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ..base.wording import suspicion
from ..record import ledgers, plain

Kind = Literal["wrong", "suspicious", "not-judged", "not-checked"]
# The order in which they are told.
KINDS: tuple[Kind, ...] = ("wrong", "suspicious", "not-judged", "not-checked")


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What is to be said of one graph.

    Args:
        test: the id of its test.
        graph: its position in the test.
        kind: ``"wrong"``, its first call computes something else; ``"suspicious"``, our analysis forbids what
            the pass wrote; ``"not-judged"``, it could not be analyzed; ``"not-checked"``, it could not run.
        text: the sentence.
        node: the first node that differs, with its operator; this and what follows is empty if not known.
        source: the line of that node, ``"file:line"``.
        since: since which pass or stage it is wrong.
    """

    test: str
    graph: int
    kind: Kind
    text: str
    node: str = ""
    source: str = ""
    since: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the pass wrote something wrongly, or may have."""
        return self.kind in ("wrong", "suspicious")

    @property
    def whole(self) -> str:
        """The sentence, with where and since when the graph is wrong."""
        parts = [self.text]
        if self.node or self.source:
            parts.append(f"first node that differs: {self.node or 'not known'} at {self.source or 'no line'}")
        return "; ".join([*parts, *([self.since] if self.since else [])])


def findings_of(report: Mapping[str, Any]) -> list[Finding]:
    """Return what is to be said of the graphs of a document, what is wrong first."""
    found = [
        one
        for test, data in sorted(report["tests"].items())
        for position, graph in enumerate(data["graphs"])
        for one in _findings(test, position, graph)
    ]
    return sorted(found, key=lambda one: KINDS.index(one.kind))


def _findings(test: str, position: int, graph: Mapping[str, Any]) -> Iterator[Finding]:
    name, verified = graph["graph"], graph.get("verified") or {"status": ""}
    yield from _of_rules(test, position, graph)
    if graph["problem"]:
        yield Finding(test, position, "not-judged", f"{name} could not be judged: {graph['problem']}")
    text = suspicion(name, graph["suspicious"], verified if verified["status"] else None)
    if verified["status"] == "different":
        text = text or f"{name} is miscompiled: on its first call {verified['text']}"
        source = verified["source"] or ""
        yield Finding(test, position, "wrong", text, verified["node"], source, since(verified))
    elif text:
        yield Finding(test, position, "suspicious", text)
    elif verified["status"] == "not-checked":
        yield Finding(test, position, "not-checked", f"{name} was not checked: {verified['text']}")


def _of_rules(test: str, position: int, graph: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield which passes and rules broke the contract, and that some were not checked."""
    applied, found = plain.applied(), graph.get("applications") or ()
    for one in filter(applied.is_wrong, found):
        wrong, what = one["finding"], "rule" if one["rule"] else "pass"
        text = f"{one['graph']}: a {what} breaks the contract: {applied.told(one)}"
        yield Finding(test, position, "wrong", text, wrong["node"], wrong.get("source") or "")
    if why := ledgers.unchecked_in(graph):
        yield Finding(test, position, "not-checked", f"{graph['graph']}: passes and rules {why}")


def since(verified: Mapping[str, Any]) -> str:
    """Return since which pass or stage a graph is wrong, empty where it is not known."""
    if verified.get("pass"):
        return f"wrong since pass {verified['pass']}"
    return f"wrong since Inductor's stage {verified['stage']}" if verified["stage"] else ""


def checked(report: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return how many graphs were checked, are wrong, and could not be checked."""
    known = [graph.get("verified") for data in report["tests"].values() for graph in data["graphs"]]
    counts = [one["status"] for one in known if one]
    wrong, not_checked = counts.count("different"), counts.count("not-checked")
    return len(counts) - not_checked, wrong, not_checked
