"""The memory of calls as ``torch.cuda.memory._dump_snapshot`` writes it, for torch's memory viewer.

Each program is a device of its own, because nobody knows which storages of one are inputs of the next. The
bytes and their order are those of the program; the addresses are ours: each storage lies at the first place
that is free, in one segment.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

from ..base.wording import location
from .drawn import Drawn, Side
from .row import Row

# torch writes this one, and the viewer reads none that is newer.
_PROTOCOL = 4
# Where the segment of the first device begins; no two overlap.
_FIRST = 1 << 40
_STREAM = 0


def dump(sides: Sequence[Side]) -> bytes:
    """Return the snapshot of calls as a pickle."""
    return pickle.dumps(snapshot(sides), protocol=_PROTOCOL)


def snapshot(sides: Sequence[Side]) -> dict[str, Any]:
    """Return the snapshot of calls, the programs of each side after those of the one before."""
    named = [(f"{one.graph} pass {side.pass_name}", one) for side in sides for one in side.programs]
    devices = [_Device(i, name, one) for i, (name, one) in enumerate(named)]
    return {
        "segments": [device.segment() for device in devices if device.size],
        "device_traces": [device.trace for device in devices],
        "allocator_settings": {},
        "external_annotations": [],
    }


class _Device:
    """One program as a device.

    Args:
        number: that of the device.
        name: what the program is called.
        program: it.
    """

    def __init__(self, number: int, name: str, program: Drawn) -> None:
        self._number = number
        self._name = name
        self._base = (number + 1) * _FIRST
        self._live: dict[int, Row] = {}  # by address
        self.size = 0
        self.trace: list[dict[str, Any]] = []
        for row in program.rows:
            if row.nbytes and row.kind in ("before", "input"):  # what no event takes was there before
                self._place(row)
        for row, is_taken in _events(program):
            self._take(row) if is_taken else self._free(row)
        if self.trace:
            self._note("snapshot", 0, 0, [], "unknown")

    def segment(self) -> dict[str, Any]:
        """Return the one segment of the device, as it is at the end."""
        blocks, at = [], self._base
        for address, row in sorted(self._live.items()):
            if at < address:
                blocks.append(_block(at, address - at, "inactive", []))
            blocks.append(_block(address, row.nbytes, "active_allocated", self._frames(row)))
            at = address + row.nbytes
        if at < self._base + self.size:
            blocks.append(_block(at, self._base + self.size - at, "inactive", []))
        active = sum(row.nbytes for row in self._live.values())
        return {
            "device": self._number,
            "address": self._base,
            "total_size": self.size,
            "allocated_size": active,
            "active_size": active,
            "requested_size": active,
            "stream": _STREAM,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": blocks,
        }

    def _place(self, row: Row) -> int:
        """Put a storage at the first place that is free, and return its address."""
        at = self._base
        for address, other in sorted(self._live.items()):
            if at + row.nbytes <= address:
                break
            at = address + other.nbytes
        self._live[at] = row
        self.size = max(self.size, at + row.nbytes - self._base)
        return at

    def _take(self, row: Row) -> None:
        self._note("alloc", self._place(row), row.nbytes, self._frames(row), row.kind)

    def _free(self, row: Row) -> None:
        address = next(at for at, one in self._live.items() if one is row)
        del self._live[address]
        for action in ("free_requested", "free_completed"):
            self._note(action, address, row.nbytes, self._frames(row), "unknown")

    def _note(
        self, action: str, address: int, size: int, frames: list[dict[str, Any]], category: str
    ) -> None:
        # The viewer colours by category, and fails where there are some and none is called "unknown".
        entry = {"action": action, "addr": address, "size": size, "stream": _STREAM, "frames": frames}
        self.trace.append({**entry, "time_us": len(self.trace), "category": category})

    def _frames(self, row: Row) -> list[dict[str, Any]]:
        """Return the user's line, with what is computed, and below it the line of the program."""
        nodes = f" for {', '.join(row.nodes)}" if row.nodes else ""
        found = []
        file, line = location(row.source) or (row.source, 0)
        if file:
            found.append({"filename": file, "line": line, "name": f"{row.label}{nodes}"})
        text = row.text or row.label
        found.append({"filename": f"program of {self._name}", "line": row.line, "name": text})
        return found


def _block(address: int, size: int, state: str, frames: list[dict[str, Any]]) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": frames}


def _events(program: Drawn) -> Iterator[tuple[Row, bool]]:
    """Yield what is taken (``True``) and released, in order; nothing that has no bytes.

    What a call takes for itself comes where its line holds most: the program's own bytes are the most then.
    """
    rows = [row for row in program.rows if row.nbytes]
    changes: list[tuple[int, Row, bool]] = []
    for row in rows:
        born, freed = row.moments
        if row.kind in ("value", "copy", "clone"):
            changes.append((born, row, True))
        if row.kind not in ("before", "outside") and freed is not None:
            changes.append((freed, row, False))
    changes.sort(key=lambda change: change[0])
    own = {at: list(found) for at, found in itertools.groupby(_outside(rows), key=lambda row: row.born)}
    done = 0
    for position, moment in enumerate(program.moments):
        while done < len(changes) and changes[done][0] <= moment:
            yield changes[done][1:]
            done += 1
        for row in own.get(position, ()):
            yield row, True
            yield row, False
    for _, row, is_taken in changes[done:]:
        yield row, is_taken


def _outside(rows: Sequence[Row]) -> list[Row]:
    return sorted((row for row in rows if row.kind == "outside"), key=lambda row: row.born)
