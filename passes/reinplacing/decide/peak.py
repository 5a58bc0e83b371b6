"""How much memory a decision holds at its peak, every value in memory from its making to its last use.

What Inductor fuses away is counted all the same: the figure compares two decisions about one graph.
"""

from __future__ import annotations

import itertools

from ..facts.decision import Decision
from ..facts.place import Storage, places


def peak_bytes(decision: Decision) -> int:
    """Return the most bytes that are held at one time, inputs left out; of hinted sizes when symbolic."""
    return max(held_bytes(decision), default=0)


def held_bytes(decision: Decision) -> list[int]:
    """Return the bytes that are held while each node runs, inputs left out."""
    model = decision.model
    end = len(model.order)
    change = [0] * (end + 1)
    for root, members in _buffers(decision).items():
        if root.is_input:
            continue
        last = max((r.time for s in members for r in model.reads.get(s, ())), default=0)
        birth = model.order[root.node]
        size = _nbytes(decision, root)
        change[birth] += size
        change[int(min(max(last, birth) + 1, end))] -= size
    return list(itertools.accumulate(change[:end]))


def _buffers(decision: Decision) -> dict[Storage, list[Storage]]:
    found: dict[Storage, list[Storage]] = {}
    for storage in decision.model.storages:
        found.setdefault(decision.root(storage), []).append(storage)
    return found


def _nbytes(decision: Decision, root: Storage) -> int:
    born = (p for p in places(decision.model.values.get(root.node)) if p.storage is root)
    return max((decision.model.nbytes(p.region) for p in born), default=0)
