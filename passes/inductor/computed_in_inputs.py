"""Values that an input takes in turn, computed in it.

Functionalization makes a fresh tensor of what overwrites an input (``y.zero_(); y.index_add_(0, i, x)``), and
stores it back at the end. An elementwise value Inductor computes where it is used, but what a kernel reads
or writes, or a scatter stores into, is in memory, and what is used after a write of what it is computed from
(``h.sub_(e); e.index_add_(0, i, x); y = h + 1``): then there are two of them, and a copy. So the epilogue is
moved to where the value is made, and the input is what everybody uses from then on. So it is with the values
before, which the last one is computed of (``x.mul_(2); y = x @ w; x.add_(y)``): each is in the input in turn.

It is legal where nobody wants by then what was in the input before, the value is no output, and both are laid
out alike. It is cheaper because Inductor stores the value in any case: now it does so once, into no buffer.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Graph, Node

from ..graph.alias import alias_of, base_of, is_epilogue, uses, viewed, written
from ..graph.collective import is_collective
from ..graph.emit import Emitter
from ..graph.sizes import shape_env_of
from ..memory.geometry import Geometry
from ..memory.region import as_size
from ..ops.computed import is_generated, needs_memory
from ..ops.schema import is_operator, schema_of
from ..ops.wrapper_names import is_wrapper
from ..reinplacing.facts.place import reads_alike
from .lowering import is_put_off
from .mend.epilogues import shared_inputs

aten: Any = torch.ops.aten
_NEVER = float("inf")
_MOST_READERS = 64  # of what is in an input, or before a value: with more of them nothing is moved


def compute(graph: Graph) -> int:
    """Let values be computed in the inputs that take them; returns how many."""
    epilogues = list(graph.find_nodes(op="call_function", target=aten.copy_.default))
    inputs = _Inputs(graph) if epilogues else None
    return sum(map(inputs.compute, epilogues)) if inputs else 0


class _Inputs:
    """A graph in which epilogues store values into inputs."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._geometry = Geometry(shape_env_of(graph))
        self._order: dict[Node, int] = {node: i for i, node in enumerate(graph.nodes)}
        self._shared = shared_inputs(graph)
        self._writes = _writes(graph, self._order)
        self._lists: dict[Node, bool] = {}  # which are stored
        self._stored: dict[Node, bool] = {}  # which values are computed and would be in memory

    def compute(self, epilogue: Node) -> int:
        """Move an epilogue to its value, and store earlier values there as well; returns how many."""
        given, source = epilogue.args[:2]
        if not isinstance(source, Node) or not isinstance(given, Node) or given.op != "placeholder":
            return 0
        if given in self._shared or not self._are_alike(given, source):
            return 0
        value, until, moved = base_of(source), epilogue, 0
        readers = [user for user in given.users if user is not epilogue]  # of what it holds before the call
        if self._may_be_in(given, value):
            if not self._are_over(readers, value):
                return 0
            self._store(given, value, epilogue)
            moved, until = 1, value
        while (earlier := self._earlier(given, readers, until)) is not None:
            self._store(given, earlier)
            moved, until = moved + 1, earlier
        return moved

    def _earlier(self, given: Node, readers: list[Node], until: Node) -> Node | None:
        """Return a value, of which the next one is computed, that may be in an input until that is stored."""
        pending, seen = list(until.all_input_nodes), {given}
        while pending and len(seen) < _MOST_READERS:
            node = base_of(pending.pop(0))
            if node in seen:
                continue
            seen.add(node)
            is_free = self._may_be_in(given, node) and self._are_over(list(node.users), until)
            if is_free and self._are_over(readers, node):
                return node
            pending += node.all_input_nodes
        return None

    def _may_be_in(self, given: Node, value: Node) -> bool:
        """Return whether a value could be in an input, and would be in memory somewhere else."""
        if value not in self._stored:
            users = [user for user, _ in uses(value) if not is_epilogue(user)]
            is_stored = all(map(_may_take_input, users)) and self._is_inlined(value)
            is_stored = is_stored and (any(map(_takes_memory, users)) or self._outlasts(value))
            self._stored[value] = is_stored
        return self._stored[value] and self._are_alike(given, value)

    def _outlasts(self, value: Node) -> bool:
        """Return whether a value is used after what it is computed from is written."""
        written = self._overwritten.get(value, _NEVER)
        return any(self._order[user] > written for user, _ in uses(value))

    @functools.cached_property
    def _overwritten(self) -> dict[Node, float]:
        """When what each value is computed from is next written: from then on the value is in memory."""
        found: dict[Node, float] = {}
        for node, made in self._order.items() if self._writes else ():
            times = [_first_after(self._writes.get(node, ()), made)]
            for source in map(base_of, _looked_at(node)):
                is_stored = not self._is_inlined(source) or found[source] < made
                times.append(_first_after(self._writes.get(source, ()), made) if is_stored else found[source])
            found[node] = min(times)
        return found

    def _is_inlined(self, node: Node) -> bool:
        """Return whether Inductor computes a value where it is used."""
        return node.op == "call_function" and is_put_off(node, self._lists) and is_generated(node)

    def _are_alike(self, one: Node, other: Node) -> bool:
        """Return whether two tensors are laid out alike, and begin at the same place in their storages."""
        first, second = one.meta.get("val"), other.meta.get("val")
        if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
            return False
        if first.dim() != second.dim() or not reads_alike(first, second):
            return False
        pairs = zip(_layout(first), _layout(second), strict=True)
        return all(self._geometry.equal(as_size(a), as_size(b)) for a, b in pairs)

    def _are_over(self, readers: list[Node], until: Node) -> bool:
        """Return whether readers of a value, or of an input, want it no more once the next value is stored.

        What is computed of it and put off wants it where it is used. The next value may be computed of it,
        element by element: so it may be overwritten one by one.
        """
        in_turn: dict[Node, bool] = {}
        pending = [(reader, True) for reader in readers]
        while pending:
            user, is_own = pending.pop()
            if self._order[user] > self._order[until] or is_collective(user.target):
                return False
            is_own = is_own and (_is_elementwise(user) or user is until)
            if user is until:
                if not is_own:
                    return False
                continue
            if in_turn.get(user) in (False, is_own):
                continue
            in_turn[user] = is_own
            if len(in_turn) > _MOST_READERS:
                return False
            if alias_of(user) is not None or self._is_inlined(user):
                pending += [(n, is_own) for n in user.users]
        return True

    def _store(self, given: Node, value: Node, epilogue: Node | None = None) -> None:
        """Store a value into an input where it is made; the input is used in its place from then on."""
        emitter = Emitter(self._graph)
        renamed = [user for user, _ in uses(value) if user is not epilogue and alias_of(user) is not None]
        if epilogue is None:
            epilogue = emitter.call(value, aten.copy_.default, (given, value))
            epilogue.meta["val"] = given.meta["val"]
        value.append(epilogue)
        value.replace_all_uses_with(given, delete_user_cb=lambda user: user is not epilogue)
        epilogue.args = (given, value)
        self._order[epilogue] = self._order[value]
        for user in renamed:
            source: Any = alias_of(user)
            user.meta["val"] = emitter.value(user) if viewed(user) is not None else source.meta["val"]


def _first_after(times: Sequence[int], time: int) -> float:
    at = bisect.bisect_right(times, time)
    return times[at] if at < len(times) else _NEVER


def _writes(graph: Graph, order: dict[Node, int]) -> dict[Node, list[int]]:
    """Return when each buffer is written, but for epilogues."""
    found: dict[Node, list[int]] = {}
    for node in graph.nodes:
        for operand in written(node) if not is_epilogue(node) else ():
            found.setdefault(base_of(operand), []).append(order[node])
    return found


def _looked_at(node: Node) -> list[Node]:
    """Return the operands of a node whose elements it looks at."""
    given = node.all_input_nodes
    return given[1:] if node.target is aten.copy.default else given


def _takes_memory(user: Node) -> bool:
    if not is_operator(user.target):
        return is_wrapper(user.target)
    return needs_memory(user.target) or schema_of(user.target).calls_kernel or bool(written(user))


def _may_take_input(user: Node) -> bool:
    """Return whether a node does the same with an input.

    A convolution may ask for other strides, in which Inductor would compute what is no input.
    """
    if not is_operator(user.target):
        return is_wrapper(user.target) or viewed(user) is not None
    return user.target is not aten.convolution.default


def _is_elementwise(node: Node) -> bool:
    """Return whether element i of a node, counted row by row, is computed of elements i alone."""
    target: Any = node.target
    if not is_operator(target):
        return False
    return torch.Tag.pointwise in target.tags or schema_of(target).keeps_order


def _layout(val: torch.Tensor) -> tuple[Any, ...]:
    return *val.size(), *val.stride(), val.storage_offset()
