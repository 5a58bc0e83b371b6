"""Condition 5: what is returned shares storage with an input or another output only where it did before."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from itertools import starmap

from torch.fx import Node

from ...reason import Reason
from ..facts import price
from ..facts.candidate import Candidate, Refusal
from ..facts.decision import Decision
from ..facts.place import Place, Storage


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

    def lift(self) -> tuple[dict[Node, int], dict[int, Refusal]]:
        """Return outputs to clone, with their bytes, and candidates to refuse; both empty when all is well.

        Where a candidate is refused the buffer becomes another one, so its outputs are left to the next
        decision.
        """
        clones: dict[Node, int] = {}
        refusals: dict[int, Refusal] = {}
        output = next(n for n in reversed(self._decision.model.graph.nodes) if n.op == "output")
        cheapest = self._cheapest(starmap(self._kept, self._leaves.items()))
        for classes in self._leaves.values():
            mine: dict[Node, int] = {}
            cuts: set[int] = set()
            for storage in classes:
                edge = cheapest[storage]
                if edge is None:
                    continue
                # Of what has no elements a copy costs nothing, and nobody can tell it from the same bytes.
                empty = {n: 0 for n, place in classes[storage].items() if self._is_empty(n, place)}
                leaves = {n: place for n, place in classes[storage].items() if n not in empty}
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

    def _kept(self, root: Storage, classes: dict[Storage, dict[Node, Place]]) -> Storage:
        """Return the storage in a buffer that stays: an input's own, else that of the largest output."""
        return root if root.is_input else max(classes, key=lambda s: self._size(classes[s]))

    def _cheapest(self, kept: Iterable[Storage]) -> dict[Storage, Candidate | None]:
        """Return for each storage the cheapest candidate between it and what is kept of its buffer."""
        edges, found = self._decision.edge, dict[Storage, Candidate | None](dict.fromkeys(kept))
        for storage in list(found):
            while storage in edges:  # up to the root
                edge, best = edges[storage], found[storage]
                storage = edge.operand.storage
                found[storage] = edge if best is None or edge.nbytes < best.nbytes else best
        for storage, edge in edges.items():  # an operand joined its buffer before what is made of it
            if storage not in found and edge.operand.storage in found:
                best = found[edge.operand.storage]
                found[storage] = edge if best is None or edge.nbytes <= best.nbytes else best
        return found

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
