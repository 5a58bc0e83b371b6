"""What is known of where values begin and how they are laid out, and what is asked of that, for whole graphs.

*Forward*, from operands to results: fake tensors of some operators say other strides than their kernels give
(``ops/true_strides.py``). And those of dimensions of one are a guess where operands have odd ones: nothing is
addressed by such a stride, so that operators give it as they like. They agree where those of all operands are
the ones that a contiguous tensor has (``tests/passes/layout/test_unit_strides.py`` asks all operators that it
can call).

*Backward*, from results to operands: an offset into the storage is moved along with the bytes that it names,
by whole items. A view of another dtype needs a beginning that its item size divides, and who asks for the
offset itself must get the same one. All are asked of a value itself and of whatever may come to lie in its
bytes.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from ..memory.region import Size, as_size, is_multiple
from ..ops.beginning import (
    EXACT,
    asked,
    asked_of_strides,
    asks_for_strides,
    goes_by_beginning,
    hands_on,
    may_ask,
    named,
)
from ..ops.in_place_form import in_place_form
from ..ops.schema import argument, is_operator, schema_of, tensors
from ..ops.traits import overloads
from ..ops.true_strides import is_mistold, may_be_mistold
from ..ops.views import is_absolute, is_expanded
from .spread import Flow, spread

_SCATTERS = overloads(lambda traits: traits.writes_through)


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """What is known of one value, and asked of it.

    Args:
        untold: whether its strides may be others than its fake tensor says.
        guessed: whether those of dimensions of one may be.
        named: the largest item of it that is named by an offset into its storage, in bytes; 0 for none.
        viewed: what its beginning must be a multiple of, in bytes: larger than any offset where the offset
            itself is asked for, 1 where only strides are, 0 where nothing is.
    """

    untold: bool = False
    guessed: bool = False
    named: int = 0
    viewed: int = 0

    @property
    def is_located(self) -> bool:
        """Whether anybody goes by the very offset at which the value begins."""
        return self.named > 0 or self.viewed == EXACT

    def may_move(self, nbytes: Size) -> bool:
        """Return whether the value may begin so many bytes elsewhere, offsets being moved along."""
        if self.named and not isinstance(nbytes, int):
            return False  # offsets are moved by a constant
        return is_multiple(nbytes, self.named) and is_multiple(nbytes, self.viewed)


_NOTHING = Layout()  # asked of most values


@dataclasses.dataclass(frozen=True, slots=True)
class Layouts:
    """What is known of the values of one graph.

    Args:
        values: by the names of their nodes, which those of a copy of the graph have, too; all others are as
            told, and nothing is asked of them.
        staying: the nodes that stay functional, by name: offsets name what is not told.
        has_names: whether bytes are named by an offset.
        has_views: whether a beginning, or strides, are asked for.
        unit: what all strides must be multiples of, also those of dimensions of one: larger items that are
            made, or more where strides are asked for.
    """

    values: Mapping[str, Layout]
    staying: frozenset[str]
    has_names: bool
    has_views: bool
    unit: int

    def of(self, node: Node, item: int | None = None) -> Layout:
        """Return what is known of a node's value, or of one of a list, asked by those who take it."""
        if item is None:
            return self.values.get(node.name, _NOTHING)
        taken = [self.of(user) for user in node.users if user.args[1] == item] or [_NOTHING]
        named, viewed = max(one.named for one in taken), max(one.viewed for one in taken)
        return dataclasses.replace(self.of(node), named=named, viewed=viewed)


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """What is known of the values of a graph and of all that it calls.

    Args:
        graphs: of each graph, by its module; ``None`` has none.
        has_beginnings: whether anybody goes by where a value begins.
    """

    graphs: Mapping[GraphModule | None, Layouts]
    has_beginnings: bool

    def of(self, graph: Graph) -> Layouts:
        """Return what is known of the values of one of the graphs, or of a copy of it."""
        return self.graphs[graph.owning_module]


def known(root: Graph, *, lowered: bool = False) -> Known:
    """Find out what is known of the values of a graph and of all that it calls.

    Args:
        root: the graph.
        lowered: whether Inductor will lower it: its kernels give the strides that are told.
    """
    flow = Flow(root)
    called = [n for graph in flow.graphs for n in graph.nodes if n.op == "call_function"]
    targets = {id(n.target): n.target for n in called}  # to hash an operator takes torch a microsecond
    asking = {key for key, target in targets.items() if may_ask(target)}
    lying = {key for key, target in targets.items() if may_be_mistold(target)}
    few = [n for n in called if id(n.target) in asking]  # none, in most graphs
    mistold = [n for n in called if id(n.target) in lying and is_mistold(n)]
    names, views = _asked(few)
    untold = flow.forward(mistold, lambda user, operand: operand in _laid_out_by(user))
    guesses = filter(_is_guess, called) if not lowered and any(map(asks_for_strides, few)) else ()
    guessed = flow.forward(guesses, lambda user, _: _has_unit(user))
    has_beginnings = any(map(goes_by_beginning, few))
    is_hidden = has_beginnings and _are_hidden(flow, mistold, lowered=lowered)
    units: dict[Graph, int] = {}
    for node in few:
        units[node.graph] = max(units.get(node.graph, 0), asked_of_strides(node))

    def of(graph: Graph) -> Layouts:
        values = {
            n.name: Layout(n in untold, n in guessed, names.get(n, 0), views.get(n, 0))
            for n in graph.nodes
            if n in untold or n in guessed or n in names or n in views
        }
        staying = graph.nodes if is_hidden else _staying(graph, untold, names) if untold else ()
        has_names, has_views = any(n in names for n in graph.nodes), any(n in views for n in graph.nodes)
        return Layouts(values, frozenset(n.name for n in staying), has_names, has_views, units.get(graph, 0))

    return Known({graph.owning_module: of(graph) for graph in flow.graphs}, has_beginnings)


def _asked(nodes: Iterable[Node]) -> tuple[dict[Node, int], dict[Node, int]]:
    """Return the items that offsets name of values, and what the beginnings of values must be multiples of.

    Args:
        nodes: those that ask.
    """
    handing: dict[int, bool] = {}

    def step(node: Node) -> Iterable[Node]:
        key = id(node.target)
        if key not in handing:
            handing[key] = node.op == "call_function" and hands_on(node.target)
        return node.all_input_nodes if handing[key] else ()

    def found(asks: Mapping[Node, int]) -> dict[Node, int]:
        start: dict[Node, int] = {}
        for node in sorted(asks, key=asks.__getitem__):
            start.update(dict.fromkeys(node.all_input_nodes, asks[node]) if asks[node] else {})
        return spread(start, step)

    names = found({n: named(n) for n in nodes})
    # A functional copy begins where its first operand does, and offsets into it are not moved along.
    copies = (n for n in names if n.target is torch.ops.aten.copy.default)
    return names, found({n: asked(n) for n in nodes} | dict.fromkeys(copies, EXACT))


def _are_hidden(flow: Flow, mistold: Iterable[Node], *, lowered: bool) -> bool:
    """Return whether offsets name bytes of what may begin elsewhere than graphs say, if they name any.

    What is moved to the device where it is remains where it is, and the graph says that it is a copy; a view
    scatter begins where its operand does, but not inside Inductor, which makes memory for it. Then no copy
    may be another. Nor may it where bytes are named of what begins where a slice does: a fake tensor begins
    where that of the first slice does.
    """
    if any(schema_of(n.target).hides_alias for n in mistold):
        return True
    if not lowered and any(map(displaced_scatters, flow.graphs)):
        return True
    adrift = flow.forward(flow.sliced, lambda user, _: hands_on(user.target), stacked=False)
    return any(goes_by_beginning(user) for node in adrift for user in node.users)


def _laid_out_by(node: Node) -> Collection[Any]:
    """Return the operands that the strides of a call's results may go by."""
    op = node.args[0] if node.args else None
    if is_operator(node.target):
        return (op,) if _is_put(node) else node.all_input_nodes
    bases = node.kwargs.get("_all_bases")
    if not isinstance(bases, list | tuple) or not is_operator(op) or schema_of(op).makes_tensor:
        return node.all_input_nodes
    return bases


def _is_put(node: Node) -> bool:
    """Return whether a call of an operator returns its first operand with something put into it."""
    return schema_of(node.target).is_scatter


def _staying(graph: Graph, untold: set[Node], names: Mapping[Node, int]) -> Iterator[Node]:
    """Yield the nodes of which no copy may be another, because of values whose strides are not told.

    Offsets name bytes of them by strides that are not theirs. And who copies a part of such a value, or all
    of it in a format of its own, makes strides by what the graph says; what keeps strides keeps those of all
    of it, whichever these are: it is dense.
    """
    parts = {n: 1 for n in graph.nodes if _is_part(n) and not untold.isdisjoint(_laid_out_by(n))}
    of_parts = spread(parts, lambda node: [user for user in node.users if node in _laid_out_by(user)])
    for node in graph.nodes:
        if node in untold and (node in names or is_absolute(node)):
            yield node
        schema = schema_of(node.target) if is_operator(node.target) else None
        if (schema is not None and schema.view) or node.target is operator.getitem:
            continue
        operands = _laid_out_by(node)
        is_other = schema is not None and not untold.isdisjoint(operands) and not _keeps_strides(node)
        if is_other or not of_parts.keys().isdisjoint(operands):
            yield node


def _is_part(node: Node) -> bool:
    """Return whether a node is a view of some elements of its operand; one that may be written has all."""
    if not is_operator(node.target) or not (schema := schema_of(node.target)).view or schema.returns_operand:
        return False
    both = [t.shape.numel() for n in (node, *node.all_input_nodes[:1]) for t in tensors(n.meta.get("val"))]
    return len(both) != 2 or not all(isinstance(n, int) for n in both) or both[0] != both[1]


def _keeps_strides(node: Node) -> bool:
    """Return whether a call's result has its operand's strides, or there is nothing in place about it."""
    if schema_of(node.target).name == "aten::clone":
        return argument(node, "memory_format") in (None, torch.preserve_format)
    return _is_put(node) or in_place_form(node.target) is None


def _is_guess(node: Node) -> bool:
    """Return whether an operator is given odd strides, and makes its own, of a dimension of one, too."""
    if not is_operator(node.target) or schema_of(node.target).view or not _has_unit(node):
        return False
    return any(_is_odd(t) for n in node.all_input_nodes for t in tensors(n.meta.get("val")))


def _has_unit(node: Node) -> bool:
    return any(not all(map(_is_more, t.shape)) for t in tensors(node.meta.get("val")))


def _is_odd(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has other strides than a contiguous one, and perhaps a dimension of one."""
    usual: Size = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if as_size(stride) != usual:
            return not all(map(_is_more, tensor.shape))
        usual = usual * as_size(size)
    return False


def _is_more(size: object) -> bool:
    return isinstance(size, int) and size > 1


def displaced_scatters(graph: Graph) -> frozenset[Node]:
    """Return the view scatters that begin where their operands do, and whose fake values say something else.

    Torch's kernels copy the storage as it is; fake tensors come from a decomposition, or from a cache.
    """
    found = (n for t in _SCATTERS for n in graph.find_nodes(op="call_function", target=t, sort=False))
    return frozenset(filter(_is_displaced, found))


def _is_displaced(node: Node) -> bool:
    operand, result = node.args[0] if node.args else None, node.meta.get("val")
    value = operand.meta.get("val") if isinstance(operand, Node) else None
    if not isinstance(value, torch.Tensor) or not isinstance(result, torch.Tensor) or is_expanded(value):
        return False
    return bool(as_size(value.storage_offset()) != as_size(result.storage_offset()))
