"""Fake values told anew: where memory begins in which a lowered graph counts offsets.

A view scatter begins where its operand does, and its fake value may begin at 0. Inductor goes by what the
graph says; who counts offsets in such a value, or in what lies in its place, needs to be told the truth. Of a
graph that runs node by node nothing is corrected: where its values may lie elsewhere than they say, and
anybody goes by that, it stays functional (``graph/find_layouts.py``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from ... import _torch
from ...graph import find_layouts
from ...graph.alias import viewed
from ...memory.geometry import Geometry
from ...memory.region import Region, as_size
from ...ops import wrapper
from ...ops.schema import is_operator, schema_of, tensors, traits_of
from ...ops.views import absolute, is_absolute, is_expanded
from ...ops.wrapper_names import is_wrapper

_EMPTY = torch.ops.aten.empty_strided.default


class _Untellable(Exception):
    """A value that cannot be told anew: then all stay as they are."""


def retell_begins(graph: Graph) -> None:
    """Correct where values begin that take the place of others in memory: all of them, or none."""
    targets = {id(n.target) for n in graph.nodes}  # to hash an operator takes torch a microsecond
    if targets.isdisjoint(map(id, absolute())):
        return  # nobody but offsets asks where a value begins
    displaced = find_layouts.displaced_scatters(graph)
    fake_mode = _torch.fake_mode_of(t for n in displaced for t in tensors(n.meta.get("val")))
    if fake_mode is None:
        return
    new: dict[Node, Any] = {}
    try:
        for node in graph.nodes:
            is_made_of_others = not new.keys().isdisjoint(node.all_input_nodes)
            if node in displaced or (is_made_of_others and _keeps_memory(node)):
                new[node] = _retold(node, lambda n: new.get(n, n.meta.get("val")), fake_mode)
    except _Untellable:
        return
    for node, value in new.items():
        node.meta["val"] = value


def _keeps_memory(node: Node) -> bool:
    """Return whether a value is a part of an operand's memory, or takes its place as it lies."""
    if node.op != "call_function" or node.target is torch.ops.aten.copy_.default:
        return False  # a copy into an input has that input's value
    if viewed(node) is not None or node.target is operator.getitem or is_wrapper(node.target):
        return True
    return is_operator(node.target) and traits_of(node.target).writes_through is not None


def _retold(node: Node, told: Callable[[Node], Any], fake_mode: Any) -> Any:
    """Return the value of a node as its operands tell it now."""
    if node.meta.get("unbacked_bindings") or (is_operator(node.target) and schema_of(node.target).mutable):
        raise _Untellable  # running it does not tell what it makes
    try:
        with _torch.expecting_refusal():
            args, kwargs = map_arg((node.args, node.kwargs), told)
            value = _torch.run_fake(fake_mode, node.target, args, kwargs)
            if traits_of(node.target).writes_through is not None:
                value = _laid_out_like(told(node.all_input_nodes[0]), fake_mode)
    except Exception as error:  # a view that these strides do not allow, or a kernel without a fake form
        raise _Untellable from error
    if is_absolute(node) and not _is_inside(node, told):
        raise _Untellable
    if [_kind(t) for t in tensors(value)] != [_kind(t) for t in tensors(node.meta.get("val"))]:
        raise _Untellable
    return value


def _is_inside(node: Node, told: Callable[[Node], Any]) -> bool:
    """Return whether the bytes that a wrapper writes by offset are some of its operand, as they should be."""
    bases: Any = node.kwargs.get("_all_bases", ())
    wholes = [Region.of(told(base)) for base in bases]
    views = wrapper.base_views(node) if bases else []
    pairs = [(wholes[v.base], v) for v in views if v.form == "as_strided" and v.base is not None]
    return all(Geometry().contains(whole, view.region(whole, 0)) for whole, view in pairs)


def _laid_out_like(operand: torch.Tensor, fake_mode: Any) -> Any:
    """Return what a functional scatter makes of its operand: a tensor that begins where that does.

    Run on fake tensors it begins at 0, by torch's decomposition of it or its cache of results. Of what is
    expanded it is a clone, with all elements; those of torch 2.11 say that it is expanded, too.
    """
    like = {"dtype": operand.dtype, "device": operand.device}
    if is_expanded(operand):
        cloned = torch.empty_strided(operand.shape, operand.stride(), device="meta").clone()
        return _torch.run_fake(fake_mode, _EMPTY, (operand.shape, cloned.stride()), like)
    ends = [(n - 1) * s for n, s in zip(operand.shape, operand.stride(), strict=True)]
    need = 0 if 0 in map(as_size, operand.shape) else operand.storage_offset() + 1 + sum(ends)
    room = _torch.run_fake(fake_mode, _EMPTY, ((need,), (1,)), like)
    layout = operand.shape, operand.stride(), operand.storage_offset()
    return _torch.run_fake(fake_mode, torch.ops.aten.as_strided.default, (room, *layout), {})


def _kind(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(map(as_size, tensor.shape)), tensor.dtype, tensor.device
