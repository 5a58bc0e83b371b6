"""What became of each candidate: the functional graph is walked beside the rewritten one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import graph_facts
from .graph_facts import CLONE, SCATTERS, TRITON_CALL, V2, WRAPPERS, maker_of, op_of, root_of, slot_of

if TYPE_CHECKING:
    from torch.fx import Node

    from .after import After
    from .before import Before

Slot = tuple[str, str]


class Fates:
    """Decides for each candidate whether the value that it makes lies where its operand lies.

    The walk keeps for every candidate's result its *home*: the node of the rewritten graph that made the
    storage in which the result lies there. So a candidate is judged by where its operand lives by then,
    however many writes lie between.

    Args:
        before: the functional graph.
        after: the rewritten one.
    """

    def __init__(self, before: Before, after: After) -> None:
        self._after = after
        self._homes: dict[Slot, Any] = {}
        self._in_place: dict[Slot, bool] = {}
        self._put_back: set[Slot] = set()
        args: dict[str, list[str]] = {}
        for outcome in before.outcomes:
            args.setdefault(outcome.node, []).append(outcome.arg)
        for name, node in before.nodes.items():
            for slot in dict.fromkeys(slot_of(node, arg) for arg in args.get(name, ())):
                mine = [a for a in args[name] if slot_of(node, a) == slot]
                self._in_place[name, slot] = self._settle(name, node, slot, self._direct(name, node, mine))
        self._nodes = before.nodes

    def in_place(self, name: str, arg: str) -> bool:
        """Return whether the candidate ``arg`` of the functional node ``name`` writes into its operand."""
        return (name, arg) not in self._put_back and self._in_place[name, slot_of(self._nodes[name], arg)]

    def home(self, name: str, arg: str) -> Any:
        """Return where the operand of a candidate lies now, ``None`` where that is not known."""
        return self._home(graph_facts.operand(self._nodes[name], arg))

    def _direct(self, name: str, node: Node, args: list[str]) -> str | None:
        """Return an argument that a call was given as it is; note those that it writes in a copy.

        Args:
            name: of a functional node.
            node: it.
            args: arguments that lie in one operand.

        Returns:
            ``None`` when the call writes only copies of parts of the operand, which are put back after it.
        """
        now = self._after.call(name)
        if op_of(node) != V2 or now is None or op_of(now) in WRAPPERS:
            return args[0]
        home = self._home(graph_facts.operand(node, args[0]))
        for arg in args:
            value = graph_facts.element(graph_facts.argument(now, arg.partition("[")[0]), arg)
            if graph_facts.is_part(node, arg) and self._after.puts_back(value, home):
                self._put_back.add((name, arg))
        return next((a for a in args if (name, a) not in self._put_back), None)

    def _home(self, value: Any) -> Any:
        """Return where a functional value lies in the rewritten graph, ``None`` where that is not known."""
        root = root_of(value)
        if not graph_facts.is_node(root):
            return None
        maker = maker_of(root)
        key = (maker[0].name, maker[1]) if maker else (root.name, "self")
        if key in self._homes:
            return self._homes[key]
        now = self._after.node(root.name)
        return None if now is None else self._after.root(now)

    def _settle(self, name: str, node: Node, slot: str, arg: str | None) -> bool:
        """Find where a candidate's result lies now, note it, and return whether its operand lies there."""
        operand = self._home(graph_facts.operand(node, slot))
        now = self._after.call(name)
        if arg is None:
            result = operand
        elif op_of(node) == CLONE:
            now = self._after.node(name)
            result = operand if now is None or op_of(now) != CLONE else now
        elif op_of(node) in SCATTERS:
            result = self._scattered(name, node, operand)
        else:
            result = self._called(name, node, slot, arg)
        if result is None:  # nothing stands for it: fused into something else, or copied first
            in_place = operand is None or not self._after.copies(operand)
            result = operand
        elif operand is None:
            in_place = not (self._after.is_copy(result) or result is now or op_of(result) in SCATTERS)
        else:
            in_place = result is operand
        self._homes[name, slot] = result
        return in_place

    def _called(self, name: str, node: Node, slot: str, arg: str) -> Any:
        """Return where the result of a wrapper, or of an operator with an in-place form, lies now."""
        now = self._after.call(name)
        if now is None:
            return None
        if op_of(now) in WRAPPERS:
            found = graph_facts.operand(now, slot)
            if graph_facts.clones_slot(now, slot):
                return self._after.fresh(now, slot)
            return self._after.root(found)
        if op_of(now) == TRITON_CALL:
            inner: Any = now.kwargs["kwargs"]
            return self._after.root(inner.get(arg))
        base = arg.partition("[")[0]
        if base not in graph_facts.mutable_arguments(now.target):
            return now
        return self._after.root(graph_facts.element(graph_facts.argument(now, base), arg))

    def _scattered(self, name: str, node: Node, operand: Any) -> Any:
        """Return where the result of a view scatter lies now."""
        now = self._after.node(name)
        if now is not None:
            return self._after.root(now)
        source: Any = node.args[1]
        names, home = _names(source), self._home(source)
        fill = self._after.take_fill(operand, lambda f: getattr(f.source, "name", "") in names)
        if fill is None and home is not None and not (home is operand and _is_filled_already(node)):
            fill = self._after.take_fill(operand, lambda f: self._after.comes_from(f.source, home))
        if fill is not None:
            return fill.root
        return operand if home is operand else None  # nothing was left to write


def _names(value: Node) -> list[str]:
    """Return the names under which a value may be known: its own, and that of what it was written into."""
    names = []
    while graph_facts.is_node(value):
        names.append(value.name)
        value = _made_from(value)
    return names


def _made_from(value: Node) -> Any:
    """Return the operand that a functional call made a value from, ``None`` for any other value."""
    call, slot = maker_of(value) or (value, "self")
    if op_of(call) in WRAPPERS | SCATTERS | {"aten::index_put", "aten::_unsafe_index_put"}:
        return graph_facts.operand(call, slot)
    return None


def _is_filled_already(node: Node) -> bool:
    """Return whether a scatter puts a value where it was made from: nothing is written if all is in place."""
    operand = _made_from(root_of(node.args[1]))
    if not graph_facts.is_node(operand):
        return False
    same_view = tuple(operand.args[1:]) == tuple(node.args[2:])
    return bool(same_view and operand.args[:1] == node.args[:1])
