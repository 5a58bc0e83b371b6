"""The cost rule: what every copy costs, and which of two ways is the cheaper one.

All figures are bytes, of hinted sizes where they are symbolic. A copy costs the bytes that it writes; memory
that nothing is copied into costs less than any copy, and ranks behind it. Whoever decides asks here, so that
another rule (bandwidth, say, or what the user did not write himself) is a change of this file alone.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Collection, Iterable

from torch.fx import Node

from ...memory.region import Region
from .candidate import Candidate, PartCopy, Snapshot
from .decision import Decision
from .model import Model
from .place import Place, Storage, places


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Rank:
    """How good a decision is, less is better, the first figure first.

    Args:
        copied: bytes of all copies that are left.
        fresh: bytes of new memory that nothing is copied into.
        added: how many copies the user did not write.
    """

    copied: int = 0
    fresh: int = 0
    added: int = 0


def rank(decision: Decision) -> Rank:
    """Return how good a decision is."""
    model = decision.model
    refused = [model.candidates[i] for i in decision.refused if i not in model.fused]
    real = (w for ws in model.writes.values() for w in ws if w.node not in decision.erased)
    parts = [part for found in decision.part_copies.values() for part in found]
    copied = sum(of_copy(c.nbytes) for c in refused)
    copied += sum(of_copy(of_region(model, w.place.region)) for w in real)
    copied += sum(of_copy(of_value(model, node)) for _, _, node in decision.own_copies)
    # The clone of a reader that is made early is refused like any other, and counted there.
    copied += of_copies(s for s in decision.snapshots if s.early is None) + of_copies(parts)
    added = sum(not c.kind.is_copy for c in refused) + len(parts)
    added += len(decision.copied) + len(decision.snapshots) + len(decision.returned)
    return Rank(copied + sum(map(of_copy, decision.returned.values())), sum(c.fresh for c in refused), added)


def of_copy(nbytes: int) -> int:
    """Return what a copy costs that writes so many bytes: as many. What is told of a copy are its bytes."""
    return nbytes


def of_operands(model: Model, operands: Iterable[Place]) -> int:
    """Return what copies of operands cost together."""
    return sum(of_copy(of_region(model, place.region)) for place in operands)


def of_region(model: Model, region: Region) -> int:
    """Return the bytes of a copy of a region, hinted when symbolic: what every figure here is made of."""
    return model.geometry.hint(region.nbytes)


def of_value(model: Model, node: Node) -> int:
    """Return the bytes of a copy of a node's whole tensor, 0 where it has none."""
    place = model.place(node)
    return 0 if place is None else of_region(model, place.region)


def of_places(model: Model, operands: Iterable[Place]) -> int:
    """Return the bytes of copies of operands together."""
    return sum(of_region(model, place.region) for place in operands)


def of_clone(size: int, *, write_only: bool, allocates: bool) -> tuple[int, int]:
    """Return the bytes that a clone copies, and those of memory that it needs and copies nothing into.

    Args:
        size: bytes of the operand.
        write_only: whether it is overwritten whole and never read.
        allocates: whether the functional form computes its result, and copies nothing.
    """
    return 0 if write_only or allocates else size, size if allocates else 0


def of_kept(model: Model, place: Place) -> int:
    """Return the bytes of a copy that keeps what is read: expanded elements are copied once."""
    return of_region(model, place.region.once)


def of_copies(copies: Iterable[Snapshot | PartCopy]) -> int:
    """Return what copies of old values, or of parts, cost together."""
    return sum(of_copy(c.nbytes) for c in copies)


def made(model: Model, node: Node) -> int:
    """Return the bytes of new memory that a node's results take; views take none."""
    given = {p.storage for _, p in model.operands((node.args, node.kwargs))}
    return sum(of_region(model, p.region) for _, p in model.operands(node) if p.storage not in given)


def written_back(model: Model, erased: Collection[Node] | None = None) -> dict[int, int]:
    """Return, for each candidate on the way from an input to a ``copy_`` into it, the bytes of that copy.

    Args:
        model: the model.
        erased: the copies that turned into identities, and would be real ones once a candidate on the way
            is refused; by default all may.
    """
    found: dict[int, int] = collections.defaultdict(int)
    for storage, writes in model.writes.items():
        for write in writes:
            if not write.is_own or (erased is not None and write.node not in erased):
                continue
            way, value = [], write.source.storage
            while value in model.made_by and model.made_by[value].obstacle is None:
                way.append(model.made_by[value].index)
                value = model.made_by[value].operand.storage
            if value is storage:
                for index in way:
                    found[index] += of_copy(of_region(model, write.place.region))
    return found


def of_refusal(model: Model, candidate: Candidate) -> int:
    """Return the bytes that are copied when a candidate is refused: its own, and those written back."""
    return of_copy(candidate.nbytes) + model.written_back.get(candidate.index, 0)


def of_cheapest_refusal(decision: Decision, candidate: Candidate, culprits: Iterable[int]) -> int:
    """Return the fewest bytes that are copied when a candidate, or a culprit in its stead, is refused.

    A result that is refused also turns the ``copy_`` back into the input into a real one.
    """
    model = decision.model
    choices = (candidate, *(model.candidates[i] for i in culprits))
    if decision.root(candidate.operand.storage).is_input:
        return min(of_refusal(model, c) for c in choices)
    return min(of_copy(c.nbytes) for c in choices)


def by_gain(model: Model, siblings: Collection[Candidate]) -> Collection[Candidate]:
    """Return the candidates of one node by what refusing them would cost, the dearest first."""
    return siblings if len(siblings) == 1 else sorted(siblings, key=lambda c: -of_refusal(model, c))


def by_bytes(model: Model, indices: Iterable[int], *, dearest_first: bool = False) -> list[int]:
    """Return candidates by the bytes of their clones, the cheapest first unless asked otherwise."""
    return sorted(indices, key=lambda i: model.candidates[i].nbytes, reverse=dearest_first)


def peak_bytes(decision: Decision) -> int:
    """Return the most bytes that are held at one time, inputs left out.

    Every value is in memory from its making to its last use: what Inductor fuses away is counted all the
    same, as the figure compares two decisions about one graph.
    """
    return max(held_bytes(decision), default=0)


def held_bytes(decision: Decision) -> list[int]:
    """Return the bytes that are held while each node runs, inputs left out."""
    model = decision.model
    buffers: dict[Storage, list[Storage]] = {}
    for storage in model.storages:
        buffers.setdefault(decision.root(storage), []).append(storage)
    end = len(model.order)
    change = [0] * (end + 1)
    for root, members in buffers.items():
        if root.is_input:
            continue
        last = max((r.time for s in members for r in model.reads.get(s, ())), default=0)
        birth = model.order[root.node]
        born = (p for p in places(model.values.get(root.node)) if p.storage is root)
        size = max((of_region(model, p.region) for p in born), default=0)
        change[birth] += size
        change[int(min(max(last, birth) + 1, end))] -= size
    for copy in decision.snapshots:
        change[model.order[copy.before]] += copy.nbytes
        change[max(model.order[reader] for reader in copy.readers) + 1] -= copy.nbytes
    return list(itertools.accumulate(change[:end]))
