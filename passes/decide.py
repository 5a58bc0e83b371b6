"""Which candidates may be written in place: the conditions of legality, and one forward decision.

A candidate at time ``t`` writes bytes of a buffer (a root storage and all that was accepted into it). It is
legal iff only dead bytes are written:

1. no value of the buffer whose bytes are written is read after ``t``, unless a real write into it
   replaces them first;
2. no other operand of the same call lies in the written bytes;
3. no later real write into the buffer hits bytes of the result that are still read;
4. no collective is using the bytes (its reads last until the wait, so condition 1 sees it);
5. the result does not come to share storage with an input or another output (``escape.py``).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from torch.fx import Node

from .candidate import Candidate, Kind
from .model import Model
from .pending import Pending
from .place import Place, Read, Storage, Write, reads_alike
from .pointwise import is_own_element
from .reason import Reason
from .region import Region
from .variant import is_stored_by_inductor

_TESTS_PER_NODE = 64  # comparisons of regions; a graph that needs more keeps copies instead of compile time
_EXPLAINED = 64  # readers that a refusal looks at: more would not be read by anybody


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why a candidate is cloned.

    Args:
        reason: the condition that failed.
        blockers: the nodes that hold it back.
        culprits: accepted candidates of which cutting any one would lift the refusal.
    """

    reason: Reason
    blockers: tuple[Node, ...] = ()
    culprits: frozenset[int] = frozenset()


@dataclasses.dataclass(slots=True)
class Decision:
    """What is done with every candidate of a model.

    Args:
        model: the model decided on.
        refused: for each cloned candidate, why.
        edge: for each storage that was accepted into another, the candidate that put it there.
        moved: scatters whose source already lies in its place: nothing is left to write.
        copied: ``(candidate, argument, node)`` of other operands that are copied to make room.
        erased: real writes that turned into identities.
        returned: ``{node: nbytes}`` of outputs that are cloned so that they share nothing.
    """

    model: Model
    refused: dict[int, Refusal] = dataclasses.field(default_factory=dict)
    edge: dict[Storage, Candidate] = dataclasses.field(default_factory=dict)
    moved: set[int] = dataclasses.field(default_factory=set)
    copied: list[tuple[int, str, Node]] = dataclasses.field(default_factory=list)
    erased: set[Node] = dataclasses.field(default_factory=set)
    returned: dict[Node, int] = dataclasses.field(default_factory=dict)
    roots: dict[Storage, Storage] = dataclasses.field(default_factory=dict)
    pending: dict[Storage, Pending] = dataclasses.field(default_factory=dict)
    _tests: int = 0

    def root(self, storage: Storage) -> Storage:
        """Return the storage whose bytes a value really occupies."""
        return self.roots.get(storage, storage)

    def accept(self, candidate: Candidate) -> None:
        """Let a candidate's result live in its operand's buffer from now on."""
        root = self.root(candidate.operand.storage)
        self.edge[candidate.result] = candidate
        self.roots[candidate.result] = root
        self._reads_in(root).add(self.model.reads[candidate.result])

    def near(self, storage: Storage, region: Region, now: float) -> Iterator[Read]:
        """Yield the reads in a storage's buffer after ``now`` that may touch a region.

        Decisions go forward: reads that are over at ``now`` are forgotten.
        """
        reads = self._reads_in(self.root(storage))
        if reads.is_large(now):
            reads.sort(self.model.shelves.of(storage))
        return reads.near(region, now)

    def meets(self, region: Region, other: Region) -> bool:
        """Return whether two regions may share a byte; always so once too many pairs were compared."""
        self._tests += 1
        if self._tests > _TESTS_PER_NODE * len(self.model.order):
            return True
        return self.model.geometry.overlap(region, other) is not False

    def _reads_in(self, root: Storage) -> Pending:
        if root not in self.pending:
            self.pending[root] = Pending(self.model.geometry)
            self.pending[root].add(self.model.reads[root])
        return self.pending[root]

    def accepted(self, candidate: Candidate) -> bool:
        """Return whether a candidate is in place."""
        return candidate.index not in self.refused

    def path(self, storage: Storage) -> list[Candidate]:
        """Return the accepted candidates between a storage and its root."""
        edges = []
        while storage in self.edge:
            edges.append(self.edge[storage])
            storage = self.edge[storage].operand.storage
        return edges

    @property
    def rank(self) -> tuple[int, int]:
        """How good the decision is, less is better: bytes left, then copies that the user did not write."""
        candidates = self.model.candidates
        made = sum(candidates[i].kind not in (Kind.CLONE, Kind.COPY) for i in self.refused)
        return self.cost, made + len(self.copied) + len(self.returned)

    @property
    def cost(self) -> int:
        """Bytes of all copies that are left."""
        model = self.model
        kept = sum(model.candidates[i].nbytes for i in self.refused)
        writes = (w for ws in model.writes.values() for w in ws if w.node not in self.erased)
        operands = sum(_nbytes(model, node) for _, _, node in self.copied)
        return (
            kept + operands + sum(model.nbytes(w.place.region) for w in writes) + sum(self.returned.values())
        )


def _nbytes(model: Model, node: Node) -> int:
    place = model.place(node)
    return 0 if place is None else model.nbytes(place.region)


def decide(model: Model, banned: dict[int, Refusal] | None = None) -> Decision:
    """Decide all candidates in graph order; those in ``banned`` are refused with the reason given."""
    decision = Decision(model)
    for candidate in _by_gain(model):
        refusal = (banned or {}).get(candidate.index) or _judge(decision, candidate)
        if refusal is not None:
            decision.refused[candidate.index] = refusal
        else:
            decision.accept(candidate)
    for writes in model.writes.values():
        decision.erased.update(w.node for w in writes if is_identity(decision, w))
    return decision


def _by_gain(model: Model) -> Iterator[Candidate]:
    """Yield candidates in graph order, those of one node by what refusing them would cost."""
    for _, siblings in itertools.groupby(model.candidates, key=lambda c: c.node):
        yield from sorted(siblings, key=lambda c: -model.gain(c))


def is_identity(decision: Decision, write: Write) -> bool:
    """Return whether a real write copies bytes onto themselves."""
    source, place = write.source, write.place
    return decision.root(source.storage) is decision.root(place.storage) and (
        decision.model.same_value(source, place)
    )


def _judge(decision: Decision, candidate: Candidate) -> Refusal | None:
    operand, result = candidate.operand.storage, candidate.result
    if candidate.obstacle is not None:
        return Refusal(candidate.obstacle)
    for storage in (result, operand, decision.root(operand)):
        if storage.sealed is not None:
            return Refusal(storage.sealed, (storage.seal,) if storage.seal is not None else ())
    if decision.model.lowered and is_stored_by_inductor(candidate):
        # Inductor stores through a view of another dtype by converting the values.
        if decision.model.dtype_of(decision.root(operand)) != candidate.operand.value.dtype:
            return Refusal(Reason.LOWERING, (candidate.operand_node,))
    if operand.relaid and not _laid_out(decision, candidate):
        return Refusal(Reason.LAYOUT)
    if candidate.kind is Kind.SCATTER and _is_moved(decision, candidate):
        decision.moved.add(candidate.index)
        return _clobbered(decision, candidate)
    return (
        _still_read(decision, candidate) or _clobbered(decision, candidate) or _same_node(decision, candidate)
    )


def _laid_out(decision: Decision, candidate: Candidate) -> bool:
    """Return whether a candidate in a relaid buffer really got there: its layout was checked for that."""
    storage = candidate.operand.storage
    while storage in decision.edge:
        storage = decision.edge[storage].operand.storage
        if not storage.relaid:
            return True
    return not storage.relaid


def _is_moved(decision: Decision, candidate: Candidate) -> bool:
    """Return whether a scatter's source already lies where the scatter would write it."""
    (_, _, source), *more = candidate.others or ((None, None, None),)
    if source is None or more:
        return False
    same_buffer = decision.root(source.storage) is decision.root(candidate.operand.storage)
    alike = reads_alike(source.value, candidate.operand.value)
    return same_buffer and alike and decision.model.geometry.same(source.region, candidate.writes[0])


def _meets(decision: Decision, region: Region, other: Region) -> bool:
    return decision.model.geometry.overlap(region, other) is not False


def _still_read(decision: Decision, candidate: Candidate) -> Refusal | None:
    """Condition 1: every pending read of the written bytes must be served before the write."""
    hits: dict[Read, None] = {}
    for written in candidate.writes:
        for read in decision.near(candidate.operand.storage, written, candidate.time):
            if read not in hits and _hits(decision, candidate, read, written):
                hits[read] = None
                if len(hits) == _EXPLAINED:
                    break
    if not hits:
        return None
    culprits = frozenset.intersection(*(_between(decision, candidate, r.place.storage) for r in hits))
    kept = [r for r in hits if not r.is_exit]
    first = min(kept or hits, key=lambda r: r.time)
    reason = Reason.STILL_READ if kept else Reason.INPUT_KEPT
    if first.in_flight:
        reason = Reason.IN_FLIGHT
    elif not _is_sure(decision, first.place, candidate.writes):
        reason = Reason.UNKNOWN_OVERLAP
    nodes = tuple(dict.fromkeys(r.node for r in sorted(kept or hits, key=lambda r: r.time)))
    return Refusal(reason, nodes, culprits)


def _is_sure(decision: Decision, place: Place, writes: Iterable[Region]) -> bool:
    return any(decision.model.geometry.overlap(place.region, w) for w in writes)


def _hits(decision: Decision, candidate: Candidate, read: Read, written: Region) -> bool:
    geometry = decision.model.geometry
    if read.node is candidate.node:
        return False  # its own operands are looked at by _same_node
    if not decision.meets(read.place.region, written):
        return False
    if read.hole is not None and geometry.contains(read.hole, written):
        return False
    if read.into is not None and not decision.model.is_needed(read.into, written):
        return False
    # A real write into the class that is read, before it is read, makes the old bytes irrelevant:
    # what the reader expects is then the written value, which its own reads protect.
    return not any(
        candidate.time < w.time < read.time
        and (
            geometry.contains(w.place.region, written) or geometry.contains(w.place.region, read.place.region)
        )
        for w in decision.model.writes.get(read.place.storage, ())
    )


def _between(decision: Decision, candidate: Candidate, storage: Storage) -> frozenset[int]:
    """Return the accepted candidates that join a reader's storage with a candidate's operand."""
    mine = {c.index for c in decision.path(candidate.operand.storage)}
    return frozenset(mine ^ {c.index for c in decision.path(storage)})


def _clobbered(decision: Decision, candidate: Candidate) -> Refusal | None:
    """Condition 3: a later ``copy_`` into the buffer must not destroy the result while it is needed."""
    geometry, result = decision.model.geometry, candidate.result
    for write in decision.model.writes.get(decision.root(candidate.operand.storage), ()):
        if write.time <= candidate.time:
            continue
        in_place = decision.model.same_value(write.source, write.place)
        if (
            not in_place
            and write.source.storage is result
            and _meets(decision, write.source.region, write.place.region)
        ):
            # A copy whose source overlaps its destination is undefined.
            return Refusal(Reason.CLOBBERED, (write.node,), _up(decision, candidate))
        for read in decision.model.reads[result]:
            if read.time <= write.time or not _meets(decision, read.place.region, write.place.region):
                continue
            if read.hole is not None and geometry.contains(read.hole, write.place.region):
                continue
            if not (in_place and _is_unchanged(decision, write.source.storage, read.place)):
                return Refusal(Reason.CLOBBERED, (write.node, read.node), _up(decision, candidate))
    return None


def _is_unchanged(decision: Decision, value: Storage, seen: Place) -> bool:
    """Return whether ``value`` was made from ``seen`` without changing the bytes that are looked at.

    Writing such a value back over them leaves them as they are.
    """
    model = decision.model
    while value is not seen.storage:
        candidate = model.made_by.get(value)
        if candidate is None or candidate.obstacle is not None:
            return False  # the value has no coordinates to compare in
        kept = [p for _, _, p in candidate.others if p.storage is seen.storage]
        for written in candidate.writes:
            put_back = candidate.kind is Kind.SCATTER and any(
                reads_alike(p.value, candidate.operand.value) and model.geometry.same(p.region, written)
                for p in kept
            )
            if not put_back and _meets(decision, seen.region, written):
                return False
        value = candidate.operand.storage
    return True


def _up(decision: Decision, candidate: Candidate) -> frozenset[int]:
    return frozenset(c.index for c in decision.path(candidate.operand.storage))


def _same_node(decision: Decision, candidate: Candidate) -> Refusal | None:
    """Condition 2: the call must not see its own write through another operand."""
    root = decision.root(candidate.operand.storage)
    for other in decision.model.siblings(candidate):
        if other.result not in decision.edge or decision.root(other.operand.storage) is not root:
            continue
        # Each was cloned on its own: neither may see the other's write, now or in its result later.
        seen = [*candidate.writes, *(r.place.region for r in decision.model.reads[candidate.result])]
        if any(_meets(decision, a, b) for a in other.writes for b in seen):
            return Refusal(Reason.SAME_NODE, (other.operand_node,), frozenset({other.index}))
    hits = [
        (name, node, place)
        for name, node, place in candidate.others
        if decision.root(place.storage) is root
        and not is_own_element(decision.model, candidate, place)
        and any(_meets(decision, place.region, w) for w in candidate.writes)
    ]
    if not hits:
        return None
    culprits = frozenset.intersection(*(_between(decision, candidate, p.storage) for _, _, p in hits))
    if _make_room(decision, candidate, hits, culprits):
        return None
    return Refusal(Reason.SAME_NODE, tuple(dict.fromkeys(n for _, n, _ in hits)), culprits)


def _make_room(
    decision: Decision,
    candidate: Candidate,
    hits: list[tuple[str, Node, Place]],
    culprits: frozenset[int],
) -> bool:
    """Copy the overlapping operands instead of the candidate (or of a culprit), where that is less."""
    model = decision.model
    nodes = {node: model.nbytes(place.region) for _, node, place in hits}
    # A result that is refused also turns the copy_ back into the input into a real one.
    gain = min(model.gain(c) for c in (candidate, *(model.candidates[i] for i in culprits)))
    if sum(nodes.values()) >= gain:
        return False
    decision.copied.extend(
        (candidate.index, name, node) for node, name in {node: name for name, node, _ in hits}.items()
    )
    return True
