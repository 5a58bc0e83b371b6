"""How many bytes are live while each node of a graph runs: as it is functional, and as it was decided.

A value is held from its making to its last use; inputs are held by the caller and left out. What Inductor
fuses, reuses or adds when it lowers the graph is not known here: the two curves compare two decisions.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..judge import graph_facts
from ..judge.graph_facts import WRAPPERS, maker_of, op_of, root_of, slot_of

if TYPE_CHECKING:
    from torch.fx import Node

    from ..passes import Outcome

MOST_POINTS = 400
MOST_COPIES = 200
MOST_VALUES = 20

# A buffer: the node that makes it, and which of its results; empty where it makes one.
Key = tuple[str, str]


@dataclasses.dataclass(slots=True)
class Buffer:
    """Bytes that one node makes, and from when to when they are needed, in positions of nodes."""

    born: int
    last: int
    nbytes: int
    is_input: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Copy:
    """A clone on the time axis: the position of its node, its label and its bytes."""

    at: int
    node: str
    label: str
    nbytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """A value that is held.

    Args:
        node: that makes it.
        element: which of its results; empty where it makes one.
        nbytes: its bytes.
        last: the position of the last node that needs it.
    """

    node: str
    element: str
    nbytes: int
    last: int


@dataclasses.dataclass(frozen=True, slots=True)
class Peak:
    """What is held where most is.

    Args:
        at: the position of the first node while which most is held.
        count: how many values are held there, inputs left out.
        values: the largest of them.
    """

    at: int
    count: int
    values: tuple[Value, ...]

    @classmethod
    def of(cls, held: Mapping[Key, Buffer], curve: Sequence[int]) -> Peak:
        """Find it: ``held`` are the buffers that ``curve`` is the sum of."""
        at = max(range(len(curve)), key=curve.__getitem__, default=0)
        alive = [
            Value(*key, b.nbytes, b.last)
            for key, b in held.items()
            if not b.is_input and b.nbytes and b.born <= at <= b.last
        ]
        largest = sorted(alive, key=lambda value: (-value.nbytes, value.node, value.element))
        return cls(at, len(alive), tuple(largest[:MOST_VALUES]))


@dataclasses.dataclass(frozen=True, slots=True)
class Timeline:
    """Live bytes over the nodes of a functional graph.

    Args:
        nodes: how many there are.
        step: how many nodes one point stands for; it shows the most of them.
        functional: when every candidate is copied, inputs left out.
        decided: with the candidates in place that the pass put in place.
        copies: the largest clones, by position.
        peak: what is held where ``decided`` is highest.
    """

    nodes: int
    step: int
    functional: tuple[int, ...]
    decided: tuple[int, ...]
    copies: tuple[Copy, ...]
    peak: Peak

    @classmethod
    def of(cls, nodes: Mapping[str, Node], outcomes: Iterable[Outcome]) -> Timeline:
        """Compute the curves of a functional graph, whose nodes come by their names, in order."""
        mine = [o for o in outcomes if not o.graph and o.node in nodes]
        positions = {name: i for i, name in enumerate(nodes)}
        buffers = Lifetimes(nodes, positions)
        clones = [o for o in mine if not o.reinplaced]
        copies = [Copy(positions[o.node], o.node, o.label, o.nbytes) for o in clones]
        largest = sorted(copies, key=lambda c: (-c.nbytes, c.at))[:MOST_COPIES]
        step = max(1, -(-len(nodes) // MOST_POINTS))
        held = buffers.merged(o for o in mine if o.reinplaced)
        decided = buffers.curve(held)
        return cls(
            nodes=len(nodes),
            step=step,
            functional=_sampled(buffers.curve(buffers.merged()), step),
            decided=_sampled(decided, step),
            copies=tuple(sorted(largest, key=lambda c: (c.at, c.label))),
            peak=Peak.of(held, decided),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the curves as JSON-ready data, with their peaks."""
        return {
            "nodes": self.nodes,
            "step": self.step,
            "functional": list(self.functional),
            "decided": list(self.decided),
            "peak_functional": max(self.functional, default=0),
            "peak_decided": max(self.decided, default=0),
            "copies": [dataclasses.asdict(copy) for copy in self.copies],
            "peak": dataclasses.asdict(self.peak),
        }


class Lifetimes:
    """The buffers of a functional graph.

    Args:
        nodes: its nodes by their names, in order.
        positions: of the names.
    """

    def __init__(self, nodes: Mapping[str, Node], positions: Mapping[str, int]) -> None:
        self._nodes = nodes
        self._positions = positions
        self._names = {node: name for name, node in nodes.items()}
        self._roots: dict[Any, Any] = {}
        self._buffers: dict[Key, Buffer] = {}
        for position, node in enumerate(nodes.values()):
            for read in node.all_input_nodes if node.target is not operator.getitem else ():
                self._touch(read, position)
            self._touch(node, position)

    def merged(self, in_place: Iterable[Outcome] = ()) -> dict[Key, Buffer]:
        """Return the buffers where these candidates are in their operands' bytes."""
        homes: dict[Key, Key] = {}
        for outcome in in_place:
            self._join(outcome, homes)
        merged: dict[Key, Buffer] = {}
        for key, buffer in self._buffers.items():
            home = _home(key, homes)
            whole = merged.setdefault(home, dataclasses.replace(self._buffers[home]))
            whole.born, whole.last = min(whole.born, buffer.born), max(whole.last, buffer.last)
        return merged

    def curve(self, merged: Mapping[Key, Buffer]) -> list[int]:
        """Return the live bytes while each node runs."""
        change = [0] * (len(self._nodes) + 1)
        for buffer in merged.values():
            if not buffer.is_input:
                change[buffer.born] += buffer.nbytes
                change[buffer.last + 1] -= buffer.nbytes
        return list(itertools.accumulate(change[:-1]))

    def _join(self, outcome: Outcome, homes: dict[Key, Key]) -> None:
        node = self._nodes[outcome.node]
        slot = slot_of(node, outcome.arg)
        operand = graph_facts.operand(node, slot)
        source = self._key(operand)
        result = outcome.node, slot if op_of(node) in WRAPPERS or "[" in slot else ""
        if source is None or source not in self._buffers or result not in self._buffers:
            return
        source, result = _home(source, homes), _home(result, homes)
        if source != result:
            homes[result] = source

    def _touch(self, value: Node, position: int) -> None:
        """Note that a value is there at a position; the first time makes its buffer."""
        key = self._key(value)
        if key is None:
            return
        buffer = self._buffers.get(key)
        if buffer is not None:
            buffer.last = max(buffer.last, position)
            return
        root = self._nodes[key[0]]
        # What views of a result are is found at the result: its buffer is there before they are.
        if graph_facts.is_tensor(value):
            is_input = root.op in ("placeholder", "get_attr")
            self._buffers[key] = Buffer(
                self._positions[key[0]], position, graph_facts.nbytes(value), is_input
            )

    def _key(self, value: Any) -> Key | None:
        """Return the buffer that a value lies in when nothing is in place, ``None`` for other arguments."""
        root = root_of(value, self._roots)
        if not graph_facts.is_node(root):
            return None
        maker = maker_of(root)
        if maker is not None:
            return self._names[maker[0]], maker[1]
        element = ""
        while root.target is operator.getitem and graph_facts.is_node(root.args[0]):
            element = f"self[{root.args[1]}]"
            root = root.args[0]
        return (self._names[root], element) if root in self._names else None


def _home(key: Key, homes: Mapping[Key, Key]) -> Key:
    while key in homes:
        key = homes[key]
    return key


def _sampled(curve: list[int], step: int) -> tuple[int, ...]:
    return tuple(max(curve[i : i + step]) for i in range(0, len(curve), step))
