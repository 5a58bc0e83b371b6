"""What becomes of values: who takes an output, and which copies are of what is written in place."""

from __future__ import annotations

import functools

from torch.fx import Node

from ..reason import Reason
from .facts.candidate import Candidate
from .facts.decision import Decision
from .facts.place import Place, Storage


class Taken:
    """The outputs of one graph by who takes them.

    Args:
        decision: what was decided.
    """

    def __init__(self, decision: Decision) -> None:
        self._decision = decision
        self._caller = decision.model.options.caller

    @functools.cached_property
    def _written(self) -> dict[Storage, Candidate]:
        """The first call that writes into each buffer in place."""
        decision, found = self._decision, dict[Storage, Candidate]()
        for candidate in decision.model.candidates:
            is_call = not (
                candidate.kind.is_copy or candidate.allocates or candidate.index in decision.model.fused
            )
            if is_call and decision.accepted(candidate):
                found.setdefault(decision.root(candidate.operand.storage), candidate)
        return found

    def whole(self, place: Place | None) -> Candidate | None:
        """Return a candidate that is in place and of whose operand a copy of some bytes has all."""
        found = None if place is None else self._written.get(self._decision.root(place.storage))
        if place is None or found is None:
            return None
        contains = self._decision.model.geometry.contains(place.region, found.operand.region)
        return found if contains else None

    def is_saved(self, node: Node) -> bool:
        """Return whether the backward graph alone takes a node."""
        return node.name in self._caller.saved

    def shares_for_backward(self, candidate: Candidate) -> bool:
        """Return whether a result would share storage only with, or as, what is saved for the backward."""
        model = self._decision.model
        if not self._caller.saved:
            return False
        tree = model.trees.get(candidate.result)
        mine = [(n, p.storage) for n, p in model.outputs if model.trees.get(p.storage) is tree]
        seen = {storage for node, storage in mine if not self.is_saved(node)}
        if tree is not None and tree.is_input:
            seen.add(tree)
        return len(seen) < 2 and any(self.is_saved(node) for node, _ in mine)

    def reads_for_backward(self, candidate: Candidate) -> bool:
        """Return whether the outputs that need the old bytes of an operand are saved for the backward."""
        decision = self._decision
        root = decision.root(candidate.operand.storage)
        outputs = decision.model.outputs if self._caller.saved else ()
        mine = [
            n for n, p in outputs if p.storage is not candidate.result and decision.root(p.storage) is root
        ]
        return bool(mine) and all(map(self.is_saved, mine))

    def is_for_backward(self, candidate: Candidate) -> bool:
        """Return whether a result is returned, and that for the backward alone."""
        outputs = self._decision.model.outputs if self._caller.saved else ()
        mine = [node for node, place in outputs if place.storage is candidate.result]
        return bool(mine) and all(map(self.is_saved, mine))

    def hint(self, line: str, *, saved: bool) -> str:
        """Return what helps where an output is a copy.

        Args:
            line: how it is listed where it is meant.
            saved: whether the backward alone takes it.
        """
        if saved:
            return f"{Reason.SAVED.hint}; for training, {line}"
        if self._caller.graph_break:
            ends = f"the graph ends at the graph break at {self._caller.graph_break}"
            return f"{ends}, and returns it to what follows: if that is meant, {line}"
        return f"{Reason.ESCAPES.hint}; if one is meant, {line}"
