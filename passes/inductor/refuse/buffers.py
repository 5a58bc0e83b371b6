"""What Inductor takes for one buffer: inputs that lie in one storage are several to it.

It follows the writes into each input by that input's name. AOTAutograd sees to it that inputs of which one is
written share no bytes: where they would, it hands on their storage as one input.
"""

from __future__ import annotations

from typing import NamedTuple

from torch.fx import Node

from ...reinplacing.facts.candidate import Candidate
from ...reinplacing.facts.decision import Decision
from ...reinplacing.facts.place import Storage, places


class Buffer(NamedTuple):
    """A storage that nothing else lives in, or an input's part of one.

    Args:
        root: the storage.
        input: the input, where several lie in the storage and the one can be told; ``None`` otherwise.
    """

    root: Storage
    input: Node | None = None


class Buffers:
    """The buffers that the candidates of a decision, and its real writes, are written into.

    Args:
        decision: what is in place.
    """

    def __init__(self, decision: Decision) -> None:
        self._decision = decision
        self._shared = _shared(decision)
        self._inputs: dict[Storage, Node | None] = {}

    def of_candidate(self, candidate: Candidate) -> Buffer:
        """Return the buffer that a candidate which is in place lives in."""
        root = self._decision.root(candidate.operand.storage)
        if root not in self._shared:
            return Buffer(root)
        edge, inputs = self._decision.edge, self._inputs
        passed, first = [candidate.result], candidate
        while first.operand.storage in edge and first.operand.storage not in inputs:
            passed.append(first.operand.storage)
            first = edge[first.operand.storage]
        above = first.operand.storage
        found = inputs[above] if above in inputs else self._input(first.operand_node, root)
        inputs.update(dict.fromkeys(passed, found))
        return Buffer(root, found)

    def of_node(self, node: Node, storage: Storage) -> Buffer:
        """Return the buffer of a node, which lies in an input's storage."""
        return Buffer(storage, self._input(node, storage) if storage in self._shared else None)

    def _input(self, node: Node | None, storage: Storage) -> Node | None:
        """Return the input that a node is a view of."""
        values = self._decision.model.values
        while node is not None and node.op not in ("placeholder", "get_attr"):
            inside = (
                n for n in node.all_input_nodes if any(p.storage is storage for p in places(values.get(n)))
            )
            node = next(inside, None)
        return node


def _shared(decision: Decision) -> set[Storage]:
    """Return the storages in which several inputs lie."""
    graph, values = decision.model.graph, decision.model.values
    seen, found = set[Storage](), set[Storage]()
    for op in ("placeholder", "get_attr"):
        for node in graph.find_nodes(op=op, sort=False):
            for place in places(values.get(node)):
                (found if place.storage in seen else seen).add(place.storage)
    return found
