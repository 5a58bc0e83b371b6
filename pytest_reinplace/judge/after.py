"""The graph as the pass under test left it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import graph_facts
from .before import Before, Epilogue
from .graph_facts import CLONE, COPY, SCATTERS, TRITON, TRITON_CALL, V1, V2, family, op_of, root_of

if TYPE_CHECKING:
    from torch.fx import Graph, Node

    from ..passes import Blocker

Key = Callable[["Node"], object]


@dataclasses.dataclass(frozen=True, slots=True)
class Fill:
    """A write of one tensor into a part of another.

    Args:
        node: a functional scatter, or a ``copy_`` into a view.
        source: the node that is written.
        root: what is written into: the scatter itself, or where the view lies.
    """

    node: Node
    source: Any
    root: Any

    @property
    def is_functional(self) -> bool:
        """Whether it writes into a copy of its own."""
        return op_of(self.node) in SCATTERS


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Fresh:
    """The storage of a clone that a wrapper, still there, will make when it is carried out.

    Args:
        wrapper: the wrapper.
        slot: its operand.
    """

    wrapper: Node
    slot: str


class After:
    """A rewritten graph, in terms of the functional one.

    A node that kept its name is the same node. What a pass replaced is found by order: the k-th replaced
    call of an operator became the k-th new call of it.

    Args:
        before: the functional graph.
        graph: the rewritten one.

    ``outputs`` is what it returns.
    """

    def __init__(self, before: Before, graph: Graph) -> None:
        self.outputs: tuple[Any, ...] = graph_facts.listed(graph.output_node().args[0])
        self._before = before
        self._nodes: dict[str, Node] = {node.name: node for node in graph.nodes}
        self._partners: dict[str, Node] = {}
        self._roots: dict[Node, Node] = {}
        self._fresh: dict[tuple[str, str], Fresh] = {}
        self._pair_up(_call_key, lambda node: op_of(node) in graph_facts.WRAPPERS)
        self._pair_up(lambda node: family(node) or None, lambda node: op_of(node) not in graph_facts.WRAPPERS)
        self._fills = list(self._all_fills())

    def node(self, name: str) -> Node | None:
        """Return a functional node if it is still there."""
        return self._nodes.get(name)

    def runs_first(self, readers: Iterable[Blocker], name: str) -> bool:
        """Return whether readers that are still there come before what a functional node became."""
        call = self.call(name)
        if call is None:
            return True
        found = (self._nodes.get(reader.node) for reader in readers)
        return all(node < call for node in found if node is not None)

    def call(self, name: str) -> Node | None:
        """Return what a functional node became, ``None`` when nothing is known to stand for it."""
        return self._nodes.get(name) or self._partners.get(name)

    def root(self, value: Any) -> Any:
        """Return the node that made the storage a value lies in, seen through all that is in place."""
        while True:
            value = root_of(value, self._roots)
            maker = graph_facts.maker_of(value)
            if maker is None:
                return value
            if graph_facts.clones_slot(*maker):
                return self.fresh(*maker)
            value = graph_facts.operand(*maker)

    def fresh(self, wrapper: Node, slot: str) -> Fresh:
        """Return the storage of the clone that a wrapper will make for an operand; always the same object."""
        return self._fresh.setdefault((wrapper.name, slot), Fresh(wrapper, slot))

    def is_copy(self, root: Any) -> bool:
        """Return whether a storage is one that the pass added."""
        if isinstance(root, Fresh):
            return True
        is_new = graph_facts.is_node(root) and root.name not in self._before.nodes
        return is_new and (op_of(root) == CLONE or family(root).startswith("empty"))

    def copies(self, root: Any) -> bool:
        """Return whether the pass added a copy of a storage."""
        return any(self.root(node.args[0]) is root for node in self._new() if op_of(node) == CLONE)

    def take_fill(self, operand: Any, is_meant: Callable[[Fill], bool]) -> Fill | None:
        """Return the next write into ``operand``, or into a copy of it, that is meant; it counts as seen.

        Args:
            operand: the storage, ``None`` when it is not known and any write may be meant.
            is_meant: chooses among them.
        """
        for fill in self._fills:
            if is_meant(fill) and (operand is None or self._reaches(fill, operand)):
                self._fills.remove(fill)
                return fill
        return None

    def puts_back(self, value: Any, operand: Any) -> bool:
        """Return whether a copy that a call is given is put back into ``operand``; that counts as seen."""
        if not graph_facts.is_node(value) or operand is None or not self.is_copy(self.root(value)):
            return False
        fill = self.take_fill(operand, lambda f: f.source is value and f.root is operand)
        return fill is not None

    def comes_from(self, value: Any, home: Any) -> bool:
        """Return whether a value lies in a storage or in an added copy of it."""
        root = self.root(value)
        return root is home or self._copied(root) is home

    def _reaches(self, fill: Fill, operand: Any) -> bool:
        if fill.is_functional:
            return self.root(fill.node.args[0]) is operand
        return fill.root is operand or self._copied(fill.root) is operand

    def _copied(self, root: Any) -> Any:
        """Return the storage that an added one is a copy of, ``None`` for any other."""
        if not self.is_copy(root):
            return None
        if isinstance(root, Fresh):
            return self.root(graph_facts.operand(root.wrapper, root.slot))
        if op_of(root) == CLONE:
            return self.root(root.args[0])
        first = next((user for user in root.users if op_of(user) == COPY and user.args[0] is root), None)
        return None if first is None else self.root(first.args[1])

    def has_copy(self, epilogue: Epilogue) -> bool:
        """Return whether the value of an epilogue is still copied into the input."""
        now = self._nodes.get(epilogue.node)
        copies = [n for n in ([now] if now is not None else self._new()) if op_of(n) == COPY]
        return any(
            _name(n.args[0]) == epilogue.target and self._value(n.args[1]) is not n.args[0] for n in copies
        )

    def _value(self, value: Any) -> Any:
        """Return the tensor that a value is, seen through writes in place; to copy it onto itself is free."""
        while True:
            inner = graph_facts.written_operand(value)
            maker = graph_facts.maker_of(value)
            if inner is None and maker is not None and not graph_facts.clones_slot(*maker):
                inner = graph_facts.operand(*maker)
            if inner is None:
                return value
            value = inner

    def _new(self) -> Iterable[Node]:
        return (
            n for n in self._nodes.values() if n.op == "call_function" and n.name not in self._before.nodes
        )

    def _all_fills(self) -> Iterable[Fill]:
        for node in self._new():
            if op_of(node) in SCATTERS:
                yield Fill(node, node.args[1], node)
            elif op_of(node) == COPY and not family(node.args[0]).startswith("empty"):
                yield Fill(node, node.args[1], self.root(node.args[0]))

    def _pair_up(self, key: Key, is_meant: Callable[[Node], bool]) -> None:
        """Pair the replaced nodes of each operator with the new calls of it, in order."""
        waiting: dict[object, list[Node]] = {}
        for node in self._new():
            waiting.setdefault(key(node), []).append(node)
        for name, node in self._before.nodes.items():
            if name not in self._nodes and node.op == "call_function" and is_meant(node):
                found = waiting.get(key(node)) if key(node) is not None else None
                if found:
                    self._partners[name] = found.pop(0)


def _call_key(node: Node) -> object:
    """Return what a wrapper and the call that it becomes have in common."""
    kind = op_of(node)
    if kind in (TRITON, TRITON_CALL):
        return TRITON, graph_facts.called(node)
    return graph_facts.called(node) if kind in (V1, V2) else node.target


def _name(value: Any) -> str:
    return str(getattr(value, "name", ""))


__all__ = ["After", "Fill", "Fresh"]
