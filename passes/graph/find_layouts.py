"""What is known of where values begin and how they are laid out, and what is asked of that, for whole graphs.

*Forward*, from operands to results: fake tensors of some operators say other strides than their kernels give
(``ops/true_strides.py``). And those of dimensions of one are a guess where operands have odd ones: nothing is
addressed by such a stride, so that operators give it as they like. They agree where those of all operands are
the ones that a contiguous tensor has (``tests/passes/layout/test_unit_strides.py`` asks all operators that it
can call).

*Backward*, from results to operands: an offset into the storage is moved along with the bytes that it names,
by whole items. A view of another dtype needs a beginning that its item size divides, and who asks for the
offset itself must get the same one. All are asked of a value itself and of whatever may come to lie in its
bytes. Across a call offsets cannot be moved along, for a subgraph is written once, for all of its calls: what
it is given, and what it returns, begins where the graph says if anybody goes by that.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable
from typing import Any

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..memory.region import as_size
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
from ..ops.schema import is_operator, schema_of, tensors
from ..ops.traits import overloads
from ..ops.true_strides import has_one, has_usual_strides, is_mistold, may_be_mistold
from ..ops.views import is_expanded
from ..ops.wrapper import wrapped
from .layouts import Known, Layout, Layouts
from .spread import Flow, backward

_SCATTERS = overloads(lambda traits: traits.writes_through)


def known(root: Graph, *, lowered: bool = False) -> Known:
    """Find out what is known of the values of a graph and of all that it calls.

    Args:
        root: the graph.
        lowered: whether Inductor will lower it: what its own kernels make has the strides that are told.
    """
    flow = Flow(root)
    called = [n for graph in flow.graphs for n in graph.nodes if n.op == "call_function"]
    targets = {id(n.target): n.target for n in called}  # to hash an operator takes torch a microsecond
    asking = {key for key, target in targets.items() if may_ask(target)}
    lying = {key for key, target in targets.items() if may_be_mistold(target)}
    few = [n for n in called if id(n.target) in asking]  # none, in most graphs
    mistold = [n for n in called if id(n.target) in lying and is_mistold(n)]
    has_beginnings = any(map(goes_by_beginning, few))
    names = backward({n: named(n) for n in few})
    views = backward(_views(few, names) | dict.fromkeys(flow.calls if has_beginnings else (), EXACT))

    def is_untold(user: Node, operand: Node) -> bool:
        return operand in _laid_out_by(user) and (not lowered or hands_on(user.target))

    untold = flow.forward(mistold, is_untold)
    guesses = filter(_is_guess, called) if not lowered and any(map(asks_for_strides, few)) else ()
    guessed = flow.forward(guesses, lambda user, _: _has_unit(user))
    units: dict[Graph, int] = {}
    for node in few:
        units[node.graph] = max(units.get(node.graph, 0), asked_of_strides(node))
    is_hidden = has_beginnings and _are_hidden(flow, mistold, lowered=lowered)

    known = {*untold, *guessed, *names, *views}

    def of(graph: Graph) -> Layouts:
        values = {
            n.name: Layout(n in untold, n in guessed, names.get(n, 0), views.get(n, 0))
            for n in graph.nodes
            if n in known
        }
        made = (n for n in graph.nodes if n in untold and _is_made_of(n, untold))
        staying = graph.nodes if is_hidden else made
        has_names = not names.keys().isdisjoint(graph.nodes)
        return Layouts(values, frozenset(n.name for n in staying), has_names, units.get(graph, 0))

    return Known({graph.owning_module: of(graph) for graph in flow.graphs}, has_beginnings)


def _views(nodes: Iterable[Node], names: Iterable[Node]) -> dict[Node, int]:
    """Return what nodes ask of where their operands begin.

    A functional copy begins where its first operand does, and offsets into it are not moved along. Nor are
    those into what lies in an operand though the schema does not say so, as the parts of ``unsafe_split`` do.
    """
    fixed = (n for n in names if n.target is torch.ops.aten.copy.default or _lies_unsaid(n))
    return {n: asked(n) for n in nodes} | dict.fromkeys(fixed, EXACT)


def _lies_unsaid(node: Node) -> bool:
    """Return whether a value lies in an operand, and whoever follows operands by schemas does not know."""
    if node.op != "call_function" or hands_on(node.target):
        return False
    given = (t for n in node.all_input_nodes for t in tensors(n.meta.get("val")))
    own = map(_torch.storage_key, tensors(node.meta.get("val")))
    return not {*map(_torch.storage_key, given)}.isdisjoint({*own} - {None})


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
    if is_operator(node.target):  # what something is put into is laid out as before
        return (op,) if schema_of(node.target).is_scatter else node.all_input_nodes
    bases = node.kwargs.get("_all_bases")
    if not isinstance(bases, list | tuple) or not is_operator(op) or schema_of(op).makes_tensor:
        return node.all_input_nodes
    return bases


def _is_made_of(node: Node, untold: set[Node]) -> bool:
    """Return whether a node lays out a result of its own, by operands whose strides are not told."""
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    is_view = is_operator(node.target) and schema_of(node.target).view
    return not is_view and not untold.isdisjoint(_laid_out_by(node))


def _is_guess(node: Node) -> bool:
    """Return whether an operator is given odd strides, and makes its own, of a dimension of one, too.

    It may be called by a wrapper, beside whose written arguments it returns what it makes.
    """
    op = wrapped(node) or node.target
    if not is_operator(op) or schema_of(op).view or not _has_unit(node):
        return False
    operands = (t for n in node.all_input_nodes for t in tensors(n.meta.get("val")))
    return any(has_one(t) and not has_usual_strides(t) for t in operands)


def _has_unit(node: Node) -> bool:
    return any(map(has_one, tensors(node.meta.get("val"))))


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
