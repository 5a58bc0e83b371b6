"""The terminal section of ``--reinplace-report``."""

from __future__ import annotations

import pytest

from . import plain, wording
from .counts import total
from .record import Record
from .visible import visible

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
            remarks.append(f"{graph['graph']} may compute something else: {', '.join(graph['suspicious'])}")
    return remarks


def _largest(terminal: pytest.TerminalReporter, records: list[Record]) -> None:
    found = [(record.nodeid, clone) for record in records for clone in record.clones]
    if not found:
        return
    outcome_type = plain.outcome_type()
    found.sort(key=lambda pair: -pair[1]["nbytes"])
    shown = min(len(found), _LARGEST)
    what = "all clones" if len(found) <= _LARGEST else f"the {shown} largest of {len(found)} clones"
    terminal.line("")
    terminal.line(f"{what}, largest first:", bold=True)
    for nodeid, clone in found[:_LARGEST]:
        first, *more = wording.clone_lines(outcome_type.from_dict(clone))
        terminal.line(f"  {visible(first, _WIDTH)}")
        for line in more:
            terminal.line(f"  {visible(line, _WIDTH)}")
        terminal.line(f"    in {visible(nodeid, _WIDTH)}", light=True)
