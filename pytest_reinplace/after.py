"""The graph as the pass under test left it, asked where each candidate of the functional graph went."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import operators
from .before import Before, Epilogue, family
from .operators import CLONE, COPY, SCATTERS, TRITON, TRITON_CALL, V1, V2, op_of, root_of

if TYPE_CHECKING:
    from torch.fx import Graph, Node

Key = Callable[["Node"], object]


class After:
    """Compares a rewritten graph with the functional one.

    A node that kept its name is compared with itself. What a pass replaced is found by order: the k-th
    replaced call of an operator became the k-th new call of it. Where there is no such call (the pass
    fused it into something else), a candidate counts as in place unless its operand is copied.

    Args:
        before: the functional graph.
        graph: the rewritten one.
    """

    def __init__(self, before: Before, graph: Graph) -> None:
        self.before = before
        self.nodes: dict[str, Node] = {node.name: node for node in graph.nodes}
        self._partners: dict[str, Node] = {}
        self._pair_up(_call_key, [TRITON, V1, V2])
        self._pair_up(_family_key, None)
        self._scattered = self._match_scatters()

    def in_place(self, name: str, arg: str) -> bool:
        """Return whether the candidate ``arg`` of the functional node ``name`` writes into its operand."""
        node = self.before.nodes[name]
        kind, now = op_of(node), self._now(name)
        if kind == CLONE:
            return now is None or op_of(now) != CLONE
        if kind in SCATTERS:
            found = self._scattered.get(name)
            return self._is_uncopied(node, arg) if found is None else found
        if now is None:
            return self._is_uncopied(node, arg)
        if op_of(now) in (V1, V2, TRITON):
            return not _clones(now, arg) and not self._is_copy(operators.operand(now, arg))
        if op_of(now) == TRITON_CALL:
            return not self._is_copy(now.kwargs["kwargs"].get(arg))  # type: ignore[union-attr]
        base = arg.partition("[")[0]
        if base not in operators.mutable_arguments(now.target):
            return False
        return not self._is_copy(operators.element(operators.argument(now, base), arg))

    def has_copy(self, epilogue: Epilogue) -> bool:
        """Return whether the value of an epilogue is still copied into the input."""
        now = self.nodes.get(epilogue.node)
        copies = (
            [now] if now is not None else [n for n in self._new(COPY) if _name(n.args[0]) == epilogue.target]
        )
        return any(op_of(n) == COPY and self._value(n.args[1]) is not n.args[0] for n in copies)

    def _value(self, value: Any) -> Any:
        """Return the tensor that a value is, seen through writes in place; to copy it onto itself is free."""
        while hasattr(value, "op"):
            inner = operators.written_operand(value)
            if inner is None and value.target is operator.getitem:
                call, key = value.args
                arg = operators.result_argument(call, key)
                if arg is not None and not _clones(call, arg):
                    inner = operators.operand(call, arg)
            if inner is None:
                break
            value = inner
        return value

    def _now(self, name: str) -> Node | None:
        return self.nodes.get(name) or self._partners.get(name)

    def _new(self, op: str) -> list[Node]:
        return [n for n in self.nodes.values() if n.name not in self.before.nodes and op_of(n) == op]

    def _is_copy(self, value: Any) -> bool:
        """Return whether a value lies in a copy that the pass made."""
        root = root_of(value)
        return op_of(root) == CLONE and root.name not in self.before.nodes if hasattr(root, "op") else False

    def _is_uncopied(self, node: Node, arg: str) -> bool:
        """Return whether nothing new copies the operand of a candidate."""
        root = root_of(operators.operand(node, arg))
        name = getattr(root, "name", None)
        return all(getattr(root_of(n.args[0]), "name", None) != name for n in self._new(CLONE))

    def _pair_up(self, key: Key, kinds: Iterable[str] | None) -> None:
        """Pair the replaced nodes of each operator with the new calls of it, in order."""
        old = [n for n in self.before.nodes.values() if n.name not in self.nodes]
        if kinds is not None:
            old = [n for n in old if op_of(n) in kinds]
        new = [n for n in self.nodes.values() if n.name not in self.before.nodes]
        waiting: dict[object, list[Node]] = {}
        for node in new:
            waiting.setdefault(key(node), []).append(node)
        for node in old:
            found = waiting.get(key(node)) if key(node) else None
            if found and node.name not in self._partners:
                self._partners[node.name] = found.pop(0)

    # -- view scatters ---------------------------------------------------------------------------

    def _writes(self) -> list[tuple[str, bool]]:
        """Return ``(name of the source, in place)`` of each scatter or copy into a view, in order."""
        writes: list[tuple[str, bool]] = []
        for node in self.nodes.values():
            if op_of(node) in SCATTERS and _inner(node) is None:
                writes.append((_name(node.args[1]), False))
            elif op_of(node) == COPY and node.name not in self.before.nodes:
                writes.append((_name(node.args[1]), not self._is_copy(node.args[0])))
        return writes

    def _match_scatters(self) -> dict[str, bool]:
        """Return for each functional scatter whether it became a write in place.

        Scatters that fill one another (``x[a][b] = v``) are one write. A write is recognised by what is
        written; those whose source was replaced, too, are taken in order.
        """
        writes = self._writes()
        scatters = [n for n in self.before.nodes.values() if op_of(n) in SCATTERS]
        innermost = [n for n in scatters if _inner(n) is None]
        found: dict[str, bool] = {}
        for by_name in (True, False):
            for node in innermost:
                if node.name in found:
                    continue
                source = _name(node.args[1])
                at = next((i for i, w in enumerate(writes) if w[0] == source or not by_name), None)
                if at is not None:
                    found[node.name] = writes.pop(at)[1]
        for node in scatters:  # in graph order: an inner scatter comes before the one that it fills
            inner = _inner(node)
            if inner is not None and inner.name in found:
                found[node.name] = found[inner.name]
        return found


def _inner(node: Node) -> Node | None:
    """Return the scatter into a view of the same tensor that a scatter puts in its place."""
    source: Any = node.args[1]
    if not hasattr(source, "op") or op_of(source) not in SCATTERS:
        return None
    return source if root_of(source.args[0]) is root_of(node.args[0]) else None


def _name(value: Any) -> str:
    return str(getattr(value, "name", ""))


def _call_key(node: Node) -> object:
    """Return what a wrapper and the call that it becomes have in common."""
    kind = op_of(node)
    if kind in (TRITON, TRITON_CALL):
        return TRITON, operators.wrapped(node)
    if kind in (V1, V2):
        return operators.wrapped(node)
    return node.target if node.op == "call_function" else None


def _family_key(node: Node) -> object:
    return family(node) or None


def _clones(node: Node, arg: str) -> bool:
    """Return whether a wrapper that is still there was told to clone an argument."""
    if op_of(node) == TRITON:
        return arg in node.kwargs["tensors_to_clone"]  # type: ignore[operator]
    told = node.meta.get("only_clone_these_tensors")
    if told is None:
        return True
    slot: Any = operators.base_number(node, arg) if op_of(node) == V2 else arg.partition("[")[0]
    return slot in told


__all__ = ["After"]
