"""The terminal section of ``--reinplace-report``."""

from __future__ import annotations

from typing import Any

import pytest

from ..base import wording
from ..base.visible import visible
from ..record import plain
from ..record.counts import total
from ..record.record import Record

_LARGEST = 10
_WIDTH = 2000


def summarize(terminal: pytest.TerminalReporter, records: list[Record]) -> None:
    """Print each test's numbers, their sums, and the largest clones with reasons."""
    terminal.section("reinplace")
    if not records:
        terminal.line("no test was captured: none ran torch.compile")
        return
    for record in records:
        terminal.line(f"{visible(record.nodeid, _WIDTH)}: {_counts(record.counts())}")
        for line in _remarks(record):
            terminal.line(f"    {visible(line, _WIDTH)}", yellow=True)
    if len(records) > 1:
        counts = _counts(total(record.counts() for record in records))
        terminal.line(f"total of {wording.plural(len(records), 'test')}: {counts}", bold=True)
    _largest(terminal, records)


def _counts(counts: dict[str, int]) -> str:
    text = (
        f"{wording.plural(counts['graphs'], 'graph')}, {wording.plural(counts['candidates'], 'candidate')}, "
        f"{counts['reinplaced']} in place, {counts['cloned']} cloned"
    )
    return f"{text}, {wording.bytes_of(counts['clone_bytes'])}" if counts["cloned"] else text


def _remarks(record: Record) -> list[str]:
    remarks = []
    for graph in record.graphs:
        if graph.get("problem"):
            remarks.append(f"{graph['graph']} could not be judged: {graph['problem']}")
        if graph.get("suspicious"):
            remarks.append(wording.suspicion(graph["graph"], graph["suspicious"], graph.get("verified")))
    return remarks


def _largest(terminal: pytest.TerminalReporter, records: list[Record]) -> None:
    found = sorted(_alike(records), key=lambda clones: -clones[0]["nbytes"])
    if not found:
        return
    outcome_type = plain.outcome_type()
    shown, count = found[:_LARGEST], sum(map(len, found))
    is_all = len(shown) == len(found)
    what = "all clones" if is_all else f"the {sum(map(len, shown))} largest of {count} clones"
    terminal.line("")
    terminal.line(f"{what}, largest first:", bold=True)
    for clones in shown:
        first, *more = wording.clone_lines(outcome_type.from_dict(clones[0]))
        terminal.line(f"  {visible(first, _WIDTH)}")
        for line in more:
            terminal.line(f"  {visible(line, _WIDTH)}")
        where = visible(clones.nodeid, _WIDTH)
        if len(clones) > 1:
            together = wording.bytes_of(sum(clone["nbytes"] for clone in clones))
            where += f", {len(clones)} times: {together} together"
        terminal.line(f"    in {where}", light=True)


class _Clones(list[dict[str, Any]]):
    """The clones that one line makes for one reason in a test: a layer of a model is called many times."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


def _alike(records: list[Record]) -> list[_Clones]:
    """Return all clones, those of one kind together, in the order in which they were made."""
    found: dict[tuple[object, ...], _Clones] = {}
    for record in records:
        for clone in record.clones:
            where = clone["source"] or (clone["node"], len(found))
            key = record.nodeid, clone["graph"], clone["label"], where, clone["reason"], clone["nbytes"]
            found.setdefault(key, _Clones(record.nodeid)).append(clone)
    return list(found.values())
