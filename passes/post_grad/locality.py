"""Each node is computed where it is first used, and not before: fewer values are in memory at a time.

Nothing moves across a write, a random number, a collective or an effect, which schemas tell: Inductor's rule
goes by names. It also moves what another library's operators compute. A reader may come behind what may be
written in place: reinplacing brings it back where that spares a copy. It brings back no views and nothing
that may be written itself, so these stay. What an epilogue stores stays too: at the end, where epilogues are,
it is held no less long. The order stays topological, so sorting it again changes nothing.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator

from torch.fx import Graph, Node

from ..graph.alias import bases, is_epilogue, is_view, written
from ..graph.movable import is_barrier, is_movable
from .rule import Places, Rule
from .sharing import may_write

_EFFECT = "a write or an effect comes in between"
_WRITE = "what it reads may be written in between"
_Guards = dict[Node, tuple[tuple[Node, str], ...]]


def _rewrite(graph: Graph) -> Places:
    moves = _Moves(graph)
    yield from moves.run()
    for node, following in itertools.pairwise(reversed(moves.order)):
        if node.next is not following:
            node.append(following)


class _Moves:
    """A graph put into another order, from its end: each node in front of its first user.

    Each node and each operand is looked at once. The graph itself stays as it is.
    """

    def __init__(self, graph: Graph) -> None:
        self.order: list[Node] = []  # from the last to the first
        self._graph, self._guards = graph, _guards(graph)
        self._placed = set[Node]()
        self._users = {node: len(node.users) for node in graph.nodes}

    def run(self) -> Places:
        """Place all nodes; yields those that move, and those that do not because of what is in between."""
        for node in reversed(list(self._graph.nodes)):
            last = node
            pending = [] if node in self._placed else [node]
            while pending:
                current = pending.pop()
                while last in self._placed:
                    last = last.prev
                if current is not last:
                    yield current.name, None, ""
                self.order.append(current)
                self._placed.add(current)
                for operand, why in self._ready(current):
                    if why:
                        yield operand.name, operand, why
                    else:
                        pending.append(operand)

    def _ready(self, node: Node) -> Iterator[tuple[Node, str]]:
        """Yield the operands that a node just placed is the first user of, and why they stay if they do."""
        is_stored = is_epilogue(node)
        for operand in node.all_input_nodes:
            self._users[operand] -= 1
            if self._users[operand] == 0 and operand in self._guards and not is_stored:
                guards = self._guards[operand]
                yield operand, next((why for guard, why in guards if guard not in self._placed), "")


def _guards(graph: Graph) -> _Guards:
    """Return what may move, each with what it has to stay in front of: what follows that does so, too."""
    found = _Guards()
    stores = {node: values for node in graph.nodes if (values := may_write(node))}
    base = bases(graph) if stores else {}
    effect: tuple[tuple[Node, str], ...] = ()
    writes: dict[Node, Node] = {}
    for node in reversed(graph.nodes):
        is_call = node.op == "call_function" and node.target is not operator.getitem
        moves = is_call and is_movable(node)
        if moves:
            stays = node in stores or is_view(node)
            read = dict.fromkeys(base[n] for n in node.all_input_nodes) if stays and writes else {}
            found[node] = (*effect, *((writes[s], _WRITE) for s in read if s in writes))
        if written(node) or (not moves and is_barrier(node)):
            effect = ((node, _EFFECT),)
        writes.update((base[value], node) for value in stores.get(node, ()))
    return found


RULE = Rule("locality", _rewrite)
