"""Condition 5: what is returned shares storage with an input or another output only where it did before."""

from __future__ import annotations

import functools
from collections.abc import Collection

from torch.fx import Node

from ...reason import Reason
from ..facts import price
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.place import Place, Storage
from ..facts.refusal import Refusal


class Escapes:
    """The outputs of a decision that would newly share bytes, and how each is kept apart.

    Args:
        decision: the decision.
        returned: outputs that are cloned already.
    """

    def __init__(self, decision: Decision, returned: Collection[Node]) -> None:
        self._decision = decision
        self._leaves: dict[Storage, dict[Storage, dict[Node, Place]]] = {}
        copied = {s.operand for s in decision.snapshots if any(r.op == "output" for r in s.readers)}
        for node, place in decision.model.outputs:
            if node not in returned and node not in copied:
                per_root = self._leaves.setdefault(decision.root(place.storage), {})
                per_root.setdefault(place.storage, {})[node] = place
        self._cheapest: dict[Storage, Candidate] = {}

    def lift(self) -> tuple[dict[Node, int], dict[int, Refusal]]:
        """Return outputs to clone, with their bytes, and candidates to refuse; both empty when all is well.

        Of several storages in one buffer, an input's own stays, else the one with the largest output. Where
        a candidate is refused the buffer becomes another one, so its outputs are left to the next decision.
        """
        clones: dict[Node, int] = {}
        refusals: dict[int, Refusal] = {}
        output = next(n for n in reversed(self._decision.model.graph.nodes) if n.op == "output")
        for root, classes in self._leaves.items():
            kept = root if root.is_input else max(classes, key=lambda s: self._size(classes[s]))
            way = self._way(kept)
            cheapest = self._cheapest_below(way)
            mine: dict[Node, int] = {}
            cuts: set[int] = set()
            for storage in classes:
                if storage is kept:
                    continue
                # Of what has no elements a copy costs nothing, and nobody can tell it from the same bytes.
                empty = {n: 0 for n, place in classes[storage].items() if self._is_empty(n, place)}
                leaves = {n: place for n, place in classes[storage].items() if n not in empty}
                edge = self._cut(way, cheapest, storage)
                node = self._cheaper_clone(leaves, edge)
                if leaves and node is None:
                    cuts.add(edge.index)
                    continue
                mine.update(empty)
                if node is not None:
                    mine[node] = price.of_kept(self._decision.model, leaves[node])
            if not cuts:
                clones.update(mine)
            refusals.update({index: Refusal(Reason.ESCAPES, (output,)) for index in cuts})
        return clones, refusals

    def _is_empty(self, node: Node, place: Place) -> bool:
        return self._decision.model.geometry.axes(place.region).empty and not self._is_pinned(node, place)

    def _is_pinned(self, node: Node, place: Place) -> bool:
        """Return whether the caller may go by where an output begins, and a copy would begin elsewhere."""
        return not self._decision.model.layouts.may_copy(node, place.value)

    def _size(self, leaves: dict[Node, Place]) -> int:
        return max(price.of_region(self._decision.model, place.region) for place in leaves.values())

    def _cut(self, way: dict[Storage, int], cheapest: list[Candidate | None], storage: Storage) -> Candidate:
        """Return the candidate to refuse to part ``storage`` and what is kept: the cheapest between them.

        Args:
            way: the storages from what is kept to the root of the buffer, numbered.
            cheapest: for each of them the cheapest candidate between it and what is kept.
            storage: another one in the buffer.
        """
        edges = self._decision.edge
        mine: list[Storage] = []
        while storage not in way and storage not in self._cheapest:
            mine.append(storage)
            storage = edges[storage].operand.storage
        best = cheapest[way[storage]] if storage in way else self._cheapest[storage]
        for member in reversed(mine):
            edge = edges[member]
            best = edge if best is None or edge.nbytes <= best.nbytes else best
            self._cheapest[member] = best
        assert best is not None
        return best

    def _cheapest_below(self, way: dict[Storage, int]) -> list[Candidate | None]:
        """Return for each storage on a way the cheapest candidate between it and the way's beginning."""
        found: list[Candidate | None] = []
        best: Candidate | None = None
        for storage in way:
            found.append(best)
            edge = self._decision.edge.get(storage)
            if edge is not None and (best is None or edge.nbytes < best.nbytes):
                best = edge
        return found

    def _way(self, storage: Storage) -> dict[Storage, int]:
        """Return the storages from one to the root of its buffer, numbered."""
        way = {storage: 0}
        while storage in self._decision.edge:
            storage = self._decision.edge[storage].operand.storage
            way[storage] = len(way)
        return way

    def _cheaper_clone(self, leaves: dict[Node, Place], edge: Candidate) -> Node | None:
        """Return the only output of a storage where cloning it costs less than refusing ``edge``."""
        if len(leaves) != 1:
            return None
        node, place = next(iter(leaves.items()))
        if self._is_pinned(node, place):
            return None
        refusal = price.of_copy(edge.nbytes) + self._written_back.get(edge.index, 0)
        return node if price.of_copy(price.of_kept(self._decision.model, place)) < refusal else None

    @functools.cached_property
    def _written_back(self) -> dict[int, int]:
        """The bytes of the erased copy_s that each candidate would make real ones by its refusal."""
        return price.written_back(self._decision.model, self._decision.erased)
