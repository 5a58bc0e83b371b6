"""Condition 5: what is returned shares storage with an input or another output only where it did before."""

from __future__ import annotations

from torch.fx import Node

from .decide import Decision, Refusal
from .place import Place, Storage
from .reason import Reason


def escapes(decision: Decision) -> list[Storage]:
    """Return the storages whose outputs would newly share bytes, in the order of the outputs.

    Of several in one buffer, an input's own storage stays, else the one with the largest output.
    """
    leaves: dict[Storage, dict[Storage, list[tuple[Node, Place]]]] = {}
    for node, place in decision.model.outputs:
        if node not in decision.returned:
            per_root = leaves.setdefault(decision.root(place.storage), {})
            per_root.setdefault(place.storage, []).append((node, place))
    found: list[Storage] = []
    for root, classes in leaves.items():
        kept = root if root.is_input else max(classes, key=lambda s: _size(decision, classes[s]))
        found.extend(s for s in classes if s is not kept)
    return found


def _size(decision: Decision, leaves: list[tuple[Node, Place]]) -> int:
    return max(decision.model.nbytes(place.region) for _, place in leaves)


def resolve(decision: Decision, storage: Storage) -> Refusal | Node:
    """Say how an escape is lifted: by cloning its one output, or by refusing a candidate.

    Returns the output's node when a clone there is cheaper, else the refusal for the candidate that
    :func:`cut` names.
    """
    leaves = {node: place for node, place in decision.model.outputs if place.storage is storage}
    edge = cut(decision, storage)
    model = decision.model
    # Refusing the candidate makes each copy_ that was erased because of it a real one again.
    price = model.candidates[edge].nbytes
    for writes in model.writes.values():
        for write in writes:
            if write.node in decision.erased and edge in {
                c.index for c in decision.path(write.source.storage)
            }:
                price += model.nbytes(write.place.region)
    if len(leaves) == 1:
        (node, place) = next(iter(leaves.items()))
        if model.nbytes(place.region) < price:
            return node
    output = next(n for n in reversed(model.graph.nodes) if n.op == "output")
    return Refusal(Reason.ESCAPES, (output,))


def cut(decision: Decision, storage: Storage) -> int:
    """Return the candidate to refuse so that ``storage`` leaves its buffer."""
    path = decision.path(storage)
    if not path:  # it is the root: another output lives in it, which leaves instead
        others = [p.storage for _, p in decision.model.outputs if decision.root(p.storage) is storage]
        path = decision.path(next(s for s in others if s is not storage))
    return min(path, key=lambda c: c.nbytes).index
