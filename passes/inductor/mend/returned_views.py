"""Outputs that AOTAutograd makes anew from an input: it asks the graph's own output how it is laid out.

``x[k:].mul_(2); return x[k:]`` gives a graph that returns a slice of the product. The caller gets a view of
``x`` itself, with the sizes, strides and *storage offset* of what the graph returned; its values are of no
account. So the graph may return the same view of the input after it was written, which holds nothing and is
cloned for nobody. An output that is no view of what is copied into an input must begin where the graph says,
which is asked for as long as the graph is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from ...graph.alias import chain, is_view
from ...graph.emit import Emitter
from ...graph.journal import erase
from ...graph.sizes import makes_sizes
from ...memory.region import Region
from ...ops.schema import traits_of
from .._torch import ask_strides

aten: Any = torch.ops.aten


def return_inputs(graph: Graph, regenerated: Mapping[int, int]) -> list[Node]:
    """Return views of inputs where AOTAutograd makes an output anew.

    Args:
        graph: the graph; in place.
        regenerated: the positions of such outputs, each with that of its input.

    Returns:
        Nodes that ask where the others begin: to be erased when the graph is decided.
    """
    if not regenerated:
        return []
    given = graph.find_nodes(op="placeholder")
    (output,) = graph.find_nodes(op="output")
    leaves: Any = output.args[0]
    emitter = Emitter(graph)
    asking, returned = [], list(leaves)
    for i, number in regenerated.items():
        leaf = leaves[i] if i < len(leaves) else None
        if not isinstance(leaf, Node) or not isinstance(leaf.meta.get("val"), torch.Tensor):
            continue
        values = list(chain(leaf))
        base = given[number] if number < len(given) else None
        copies = ((n, _written(n, base, values[:at])) for at, n in enumerate(values))
        source, written = next(((n, copy) for n, copy in copies if copy is not None), (None, None))
        if source is not None and written is not None and not any(map(makes_sizes, values)):
            view = _views_of(emitter, output, written, source, values[: values.index(source)])
            ask_strides(output, i, view.meta["val"].stride())
            returned[i] = view
        elif values[-1].op != "placeholder":
            asking.append(emitter.call(output, aten.sym_storage_offset.default, (leaf,)))
            asking[-1].meta["val"] = leaf.meta["val"].storage_offset()
    output.args = (type(leaves)(returned),)
    unused = dict.fromkeys(n for n, new in zip(leaves, returned, strict=True) if n is not new and is_view(n))
    erase(graph, [n for n in unused if not n.users])
    return asking


def _written(source: Node, base: Node | None, views: list[Node]) -> Node | None:
    """Return what copies a value into an input of which the views are the same.

    Those that sizes tell are, whatever the strides: eager mode takes them of the input.
    """
    for user in source.users:
        if user.target is aten.copy_.default and user.args == (base, source):
            into, value = Region.of(user.meta["val"]), Region.of(source.meta["val"])
            if user.meta["val"].dtype != source.meta["val"].dtype or _differ(into.sizes, value.sizes):
                continue
            if into.strides == value.strides or all(map(_is_told_by_sizes, views)):
                return user
    return None


def _differ(sizes: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether sizes are others, and not the same ones written in another way.

    What is copied into an input at the end has its sizes; ``x.view(2, -1)`` may have left symbols for them of
    which nobody can tell. Those that are numbers must agree: a copy may also spread a 1.
    """
    pairs = zip(sizes, others, strict=True) if len(sizes) == len(others) else [(0, 1)]
    return any(a != b and (isinstance(a, int) or isinstance(b, int)) for a, b in pairs)


def _is_told_by_sizes(view: Node) -> bool:
    traits = traits_of(view.target)
    return not (traits.by_strides or traits.names_offset or traits.regroups or traits.retypes)


def _views_of(emitter: Emitter, before: Node, written: Node, source: Node, views: list[Node]) -> Node:
    """Return the views of a source made of an input instead, after it was written."""
    made = {source: written}
    for view in reversed(views):
        args, kwargs = map_arg((view.args, view.kwargs), lambda n: made.get(n, n))
        made[view] = emitter.view(before, view.target, args, kwargs)
    return made[views[0]] if views else written
