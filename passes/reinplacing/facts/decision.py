"""What is done with every candidate of a model: the record that a decision fills in as it goes forward."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from torch.fx import Node

from ...memory.region import Region
from .candidate import Candidate, PartCopy, Refusal, Snapshot
from .model import Model
from .pending import Pending
from .place import Read, Storage, Write

_TESTS_PER_NODE = 64  # comparisons of regions; a graph that needs more keeps copies instead of compile time


@dataclasses.dataclass(slots=True)
class Decision:
    """What is done with every candidate of a model.

    Args:
        model: the model decided on.
        refused: for each cloned candidate, why.
        chosen: those of them that are refused whatever the conditions say, to copy less elsewhere.
        edge: for each storage that was accepted into another, the candidate that put it there.
        already_there: scatters whose source already lies in its place: nothing is left to write.
        copied: ``(candidate, argument, node)`` of other operands that are copied to make room.
        part_copies: for a base that is in place, the views of it that the call writes in copies.
        snapshots: copies of old values for later readers.
        instead: accepted candidates of which cutting one would save such copies.
        served: the reads that are served by them, with the time when the copy is made.
        early: candidates that write into a clone which was made early, with the node that it was made for.
        erased: real writes that turned into identities.
        returned: ``{node: nbytes}`` of outputs that are cloned so that they share nothing.
        assumed: ``(candidate, write, reader)``: accepted because a later write is expected to turn into an
            identity, or it would overwrite what the reader needs.
    """

    model: Model
    refused: dict[int, Refusal] = dataclasses.field(default_factory=dict)
    chosen: dict[int, Refusal] = dataclasses.field(default_factory=dict)
    edge: dict[Storage, Candidate] = dataclasses.field(default_factory=dict)
    already_there: set[int] = dataclasses.field(default_factory=set)
    copied: list[tuple[int, str, Node]] = dataclasses.field(default_factory=list)
    part_copies: dict[int, list[PartCopy]] = dataclasses.field(default_factory=dict)
    snapshots: list[Snapshot] = dataclasses.field(default_factory=list)
    instead: dict[int, None] = dataclasses.field(default_factory=dict)
    served: dict[Read, int] = dataclasses.field(default_factory=dict)
    early: dict[int | None, Node] = dataclasses.field(default_factory=dict)
    erased: set[Node] = dataclasses.field(default_factory=set)
    returned: dict[Node, int] = dataclasses.field(default_factory=dict)
    assumed: list[tuple[Candidate, Write, Node]] = dataclasses.field(default_factory=list)
    roots: dict[Storage, Storage] = dataclasses.field(default_factory=dict)
    pending: dict[Storage, Pending] = dataclasses.field(default_factory=dict)
    seen: int = 0  # readers that refusals looked at
    _laid_out: dict[Storage, bool] = dataclasses.field(default_factory=dict)
    _tests: int = 0
    _met: tuple[Region, Region, bool] | None = None  # the last answer: readers of one value ask alike

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
        if self._met is not None and region is self._met[0] and other is self._met[1]:
            return self._met[2]
        self._tests += 1
        if self._tests > _TESTS_PER_NODE * len(self.model.order):
            return True
        found = self.model.geometry.overlap(region, other) is not False
        self._met = region, other, found
        return found

    def _reads_in(self, root: Storage) -> Pending:
        if root not in self.pending:
            self.pending[root] = Pending(self.model.geometry)
            self.pending[root].add(self.model.reads[root])
        return self.pending[root]

    def accepted(self, candidate: Candidate) -> bool:
        """Return whether a candidate is in place."""
        return candidate.index not in self.refused

    def is_laid_out(self, storage: Storage) -> bool:
        """Return whether a storage has the layout it is expected to have.

        One that was to take its operand's place and was refused has the layout of the graph after all, and
        so has what is computed from it.
        """
        if not storage.relaid:
            return True
        if storage not in self._laid_out:
            edge = self.edge.get(storage)
            on = storage.follows if edge is None else (edge.operand.storage,)
            self._laid_out[storage] = bool(on) and all(map(self.is_laid_out, on))
        return self._laid_out[storage]

    def is_identity(self, write: Write) -> bool:
        """Return whether a real write copies bytes onto themselves, as far as is decided."""
        if not write.is_own or self.root(write.source.storage) is not self.root(write.place.storage):
            return False
        if not self.served:
            return True
        # One that is served copies an older value, from elsewhere.
        return not any(read in self.served for read in self.model.reads_by.get(write.node, ()))

    def is_served(self, reader: Node, operand: Node) -> bool:
        """Return whether a reader is given a copy of an operand that was made earlier."""
        return any(s.operand is operand and reader in s.readers for s in self.snapshots)

    def is_copied(self, read: Read, now: float) -> bool:
        """Return whether a read is served by a copy that was made at some time or before."""
        return self.served.get(read, math.inf) <= now

    def kept_for(self, candidate: Candidate) -> set[Node]:
        """Return the operands that are copied right before a candidate's node anyway, for later readers.

        A reader that will write into its copy does so later, so the candidate's node may read it, too.
        """
        return {s.operand for s in self.snapshots if s.before is candidate.node}

    @property
    def own_copies(self) -> list[tuple[int, str, Node]]:
        """Copies of operands that no snapshot makes anyway."""
        made = {(s.before, s.operand) for s in self.snapshots}
        nodes = self.model.candidates
        return [(i, name, node) for i, name, node in self.copied if (nodes[i].node, node) not in made]

    def forget_snapshots(self, since: int) -> None:
        """Drop the snapshots from number ``since`` on: what they were made for was refused."""
        for snapshot in self.snapshots[since:]:
            for read in snapshot.reads:
                self.served.pop(read, None)
            self.early.pop(snapshot.early, None)
        del self.snapshots[since:]

    def path(self, storage: Storage) -> list[Candidate]:
        """Return the accepted candidates between a storage and its root."""
        edges = []
        while storage in self.edge:
            edges.append(self.edge[storage])
            storage = self.edge[storage].operand.storage
        return edges
