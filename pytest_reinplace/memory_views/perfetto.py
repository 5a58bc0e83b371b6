"""The memory of calls in Chrome's trace event format, which Perfetto opens.

A position of a program is a microsecond of the trace. Each program is a process, each storage a thread with
one slice in it, what calls take for themselves is one more thread, and the live bytes are a counter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from .drawn import Drawn, Side
from .row import Row

_OUTSIDE = "inside calls"


def trace(function: str, sides: Sequence[Side]) -> dict[str, Any]:
    """Return a trace as JSON-ready data.

    Programs of one side follow each other; those of the next begin at 0 again, for comparison.

    Args:
        function: what was called.
        sides: the call with each pass.
    """
    numbers = itertools.count(1)  # no process and no thread has the number of another
    events: list[dict[str, Any]] = []
    for side in sides:
        begin = 0
        for one in side.programs:
            name = f"{one.graph} pass {side.pass_name}"
            events += _Process(next(numbers), name, begin, numbers).events(one)
            begin += len(one.live)
    peaks = {side.pass_name: side.memory.measured for side in sides}
    about = {"function": function, "unit": "1 us is one position of a program", "measured_peak": peaks}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": about}


class _Process:
    """One program in a trace.

    Args:
        pid: its number.
        name: what it is called.
        begin: when it begins.
        numbers: gives numbers to its threads.
    """

    def __init__(self, pid: int, name: str, begin: int, numbers: Iterator[int]) -> None:
        self._pid = pid
        self._name = name
        self._begin = begin
        self._numbers = numbers

    def events(self, program: Drawn) -> Iterator[dict[str, Any]]:
        """Yield all events of the program: names, then each storage, then counters."""
        yield self._named("process_name", 0, name=self._name)
        yield self._named("process_sort_index", 0, sort_index=self._pid)
        if program.problem:
            yield self._named("process_labels", 0, labels=f"not known: {program.problem}")
        if program.aside:
            text = f"the measured peak counts {program.aside} B less: held before the call, released in it"
            yield self._named("process_labels", 0, labels=text)
        for row in program.rows:
            if row.kind != "outside":
                tid = next(self._numbers)
                yield from self._thread(tid, row.label)
                yield self._slice(tid, row)
        if (outside := [row for row in program.rows if row.kind == "outside"]) or program.gaps:
            tid = next(self._numbers)
            yield from self._thread(tid, _OUTSIDE)
            yield from (self._slice(tid, row) for row in outside)
            for position, text in program.gaps:
                yield self._event("i", tid, position, name=text, cat="gap", s="t")
        for position, nbytes in enumerate(program.live):
            yield self._event("C", 0, position, name="live", args={"bytes": nbytes})
        if program.live:
            yield self._event("C", 0, len(program.live), name="live", args={"bytes": program.after})

    def _thread(self, tid: int, name: str) -> Iterator[dict[str, Any]]:
        yield self._named("thread_name", tid, name=name)
        yield self._named("thread_sort_index", tid, sort_index=tid)

    def _slice(self, tid: int, row: Row) -> dict[str, Any]:
        args = {
            "bytes": row.nbytes,
            "kind": row.kind,
            "names": [row.name, *row.later],
            "nodes": list(row.nodes),
            "source": row.source,
            "line": row.line,
            "text": row.text,
            "why": row.why,
            "outlives": row.freed is None,
        }
        name = f"{row.name}: {row.nbytes} B"
        return self._event("X", tid, row.span.start, name=name, cat=row.kind, dur=len(row.span), args=args)

    def _event(self, ph: str, tid: int, position: int, **more: Any) -> dict[str, Any]:
        return {"ph": ph, "pid": self._pid, "tid": tid, "ts": self._begin + position, **more}

    def _named(self, what: str, tid: int, **args: Any) -> dict[str, Any]:
        return self._event("M", tid, 0, name=what, args=args)
