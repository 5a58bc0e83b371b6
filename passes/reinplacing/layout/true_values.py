"""Fake values told anew: what a graph's kernels make, where its fake tensors say something else.

Some operators have a rule for how their results are laid out, or return their operand itself, and fake
tensors that know nothing of it (``ops/true_strides.py``). Whoever runs the graph node by node gets what the
kernels make, so their values are corrected before the graph is analysed, and so is all that is computed from
them. Inductor makes kernels of its own, which go by what the graph says: for it only is corrected where the
memory begins in which the graph counts offsets (``retell_begins``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from ... import _torch
from ...errors import GraphError
from ...graph import find_layouts
from ...graph.alias import viewed
from ...graph.emit import like, placed_like
from ...memory.geometry import Geometry
from ...memory.region import Region, as_size
from ...ops import wrapper
from ...ops.schema import arguments, is_operator, schema_of, tensors, traits_of
from ...ops.true_strides import has_rule, is_mistold, made
from ...ops.views import absolute, is_absolute, is_expanded
from ...ops.wrapper_names import is_wrapper

_EMPTY = torch.ops.aten.empty_strided.default
Result = TypeVar("Result")


class _Untellable(Exception):
    """A value that cannot be told anew: then all stay as they are."""


def with_true_values(graph: Graph, work: Callable[[], Result], *, lowered: bool, keep: bool) -> Result:
    """Return what ``work`` returns while the graph's fake values are what its kernels make.

    Where these name bytes that no graph may name, it is done on the values as they are written.

    Args:
        graph: the graph; its subgraphs are left alone.
        work: what looks at the graph, or rewrites it.
        lowered: whether Inductor will lower the graph: then no value is corrected.
        keep: whether they stay corrected where all went well, for what is written instead relies on them.
    """
    before = {} if lowered else _retell(graph, lowered=False)
    is_kept = False
    try:
        result = work()
        is_kept = keep
        return result
    except GraphError:
        if not before:
            raise
    finally:
        for node, value in before.items() if not is_kept else ():
            node.meta["val"] = value
    return work()


def retell_begins(graph: Graph) -> None:
    """Correct where values begin that take the place of others in memory, in a graph that is lowered."""
    _retell(graph, lowered=True)


def _retell(graph: Graph, *, lowered: bool) -> dict[Node, Any]:
    """Correct the values of a graph, all or none; returns what they were."""
    targets = {id(n.target): n.target for n in graph.nodes}  # to hash an operator takes torch a microsecond
    ruled = {key for key, target in targets.items() if has_rule(target) and not lowered}
    is_named = not targets.keys().isdisjoint(map(id, absolute()))
    if not ruled and not is_named:
        return {}
    try:
        mistold = {n for n in graph.nodes if id(n.target) in ruled and is_mistold(n)}
        # Nobody but offsets asks where a value begins.
        displaced = find_layouts.displaced_scatters(graph) if is_named else frozenset()
    except (TypeError, AttributeError, IndexError, KeyError):
        return {}  # arguments that do not fit: the analysis says which
    first = mistold | displaced
    fake_mode = _torch.fake_mode_of(t for n in first for t in tensors(n.meta.get("val"))) if first else None
    if fake_mode is None:
        return {}
    new: dict[Node, Any] = {}
    try:
        for node in graph.nodes:
            is_computed_anew = not new.keys().isdisjoint(node.all_input_nodes)
            if node in first or (is_computed_anew and (not lowered or _keeps_memory(node))):
                _retell_one(node, new, fake_mode, is_displaced=node in displaced, by_rule=not lowered)
    except _Untellable:
        return {}
    before = {node: node.meta.get("val") for node in new}
    for node, value in new.items():
        node.meta["val"] = value
    return before


def _keeps_memory(node: Node) -> bool:
    """Return whether a value is a part of an operand's memory, or takes its place as it lies."""
    if node.op != "call_function":
        return False
    if viewed(node) is not None or node.target is operator.getitem or is_wrapper(node.target):
        return True
    return is_operator(node.target) and traits_of(node.target).writes_through is not None


def _retell_one(
    node: Node, new: dict[Node, Any], fake_mode: Any, *, is_displaced: bool, by_rule: bool
) -> None:
    if node.op == "output" or node.target is torch.ops.aten.copy_.default:
        return  # a copy into an input has that input's value

    def told(n: Node) -> Any:
        return new.get(n, n.meta.get("val"))

    if not _is_runnable(node):
        raise _Untellable
    is_given_others = not new.keys().isdisjoint(node.all_input_nodes)
    try:
        with _torch.expecting_refusal():
            value = _as_made(node, told, fake_mode) if by_rule and has_rule(node.target) else None
            if value is None and (is_given_others or is_displaced):
                args, kwargs = map_arg((node.args, node.kwargs), told)
                value = _torch.run_fake(fake_mode, node.target, args, kwargs)
                if traits_of(node.target).writes_through is not None:
                    value = _laid_out_like(told(node.all_input_nodes[0]), fake_mode)
    except Exception as error:  # a view that these strides do not allow, or a kernel without a fake form
        raise _Untellable from error
    if is_absolute(node) and not _is_inside(node, told):
        raise _Untellable
    if value is None:
        return  # no rule for such operands
    if [_kind(t) for t in tensors(value)] != [_kind(t) for t in tensors(node.meta.get("val"))]:
        raise _Untellable
    new[node] = value


def _is_inside(node: Node, told: Callable[[Node], Any]) -> bool:
    """Return whether the bytes that a wrapper writes by offset are some of its operand, as they should be."""
    bases: Any = node.kwargs.get("_all_bases", ())
    wholes = [Region.of(told(base)) for base in bases]
    views = wrapper.base_views(node) if bases else []
    pairs = [(wholes[v.base], v) for v in views if v.form == "as_strided" and v.base is not None]
    return all(Geometry().contains(whole, view.region(whole, 0)) for whole, view in pairs)


def _is_runnable(node: Node) -> bool:
    """Return whether running a node on fake values tells what it makes."""
    if node.op != "call_function" or node.meta.get("unbacked_bindings"):
        return False
    if is_operator(node.target):
        return not schema_of(node.target).mutable
    return node.target is operator.getitem or is_wrapper(node.target)


def _as_made(node: Node, told: Callable[[Node], Any], fake_mode: Any) -> Any:
    """Return what a kernel makes of its arguments by its rule, ``None`` where the rule does not tell it."""
    args: Any = map_arg(tuple(value for _, value in arguments(node)), told)
    old = node.meta["val"]
    if schema_of(node.target).hides_alias:
        return args[0] if args[0].device == old.device else None
    results, layouts = list(tensors(old)), made(node.target, args)
    if layouts is None or len(layouts) != len(results):
        return None
    new = [
        _torch.run_fake(fake_mode, _EMPTY, (t.shape, strides), like(t))
        for t, strides in zip(results, layouts, strict=True)
    ]
    return new[0] if isinstance(old, torch.Tensor) else new


def _laid_out_like(operand: torch.Tensor, fake_mode: Any) -> Any:
    """Return what a functional scatter makes of its operand: a tensor that begins where that does.

    Run on fake tensors it begins at 0, by torch's decomposition of it or its cache of results. Of what is
    expanded it is a clone, with all elements; those of torch 2.11 say that it is expanded, too.
    """
    if is_expanded(operand):
        cloned = torch.empty_strided(operand.shape, operand.stride(), device="meta").clone()
        return _torch.run_fake(fake_mode, _EMPTY, (operand.shape, cloned.stride()), like(operand))
    return placed_like(fake_mode, operand, operand.storage_offset())


def _kind(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(map(as_size, tensor.shape)), tensor.dtype, tensor.device
