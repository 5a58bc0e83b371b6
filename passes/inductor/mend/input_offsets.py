"""Offsets of ``as_strided`` into inputs, counted from where Inductor counts them.

An offset names an element of the storage. An input that does not begin where its storage does Inductor gets
by a pointer to its first element, and may count from there: what is meant is as many elements before as the
input has before it. Where the running torch counts from is tried out once.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

import sympy
import torch
from torch.fx import Graph, GraphModule, Node

from ... import _torch
from ...graph.alias import bases, begin_of
from ...graph.sizes import given, written_out
from ...ops.schema import argument
from ...ops.wrapper import number
from .._torch import lowered_graph
from ..defects import defended
from ..lowering import is_put_off

aten: Any = torch.ops.aten
log: logging.Logger = logging.getLogger(__name__)


def rebase(graph: Graph) -> int:
    """Count offsets into inputs as Inductor will; returns how many are others now."""
    strided = graph.find_nodes(op="call_function", target=aten.as_strided.default)
    if not strided or not counts_from_inputs() or not defended("offsets-from-input"):
        return 0
    count, named, base_of, stored = 0, given(graph), bases(graph), dict[Node, bool]()
    for node in strided:
        base, offset = base_of[node], argument(node, "storage_offset")
        begin = begin_of(base) if base.op == "placeholder" else 0
        if offset is not None:
            is_lost, meant = begin != 0, number(offset)
        else:  # it begins where its operand does, which is lost, too, if that is a view of what is in memory
            is_lost, meant = node.args[0] is not base and not is_put_off(base, stored), begin_of(node)
        if not is_lost or _is_apart(node.meta["val"], base.meta["val"]):
            continue
        relative = written_out(node, sympy.expand(meant - begin), named)
        if relative is None or (isinstance(relative, int) and relative < 0):
            continue  # where the input begins has no name here, or what is named lies before it
        node.args = (node.args[0], argument(node, "size"), argument(node, "stride"), relative)
        node.kwargs = {}
        count += 1
    return count


def _is_apart(view: torch.Tensor, base: torch.Tensor) -> bool:
    """Return whether a view is a buffer of its own to Inductor, or its kernel is called."""
    return view.dtype != base.dtype or view.is_complex()


def count_in_copies(graph: Graph) -> int:
    """Count offsets of ``as_strided_scatter`` in Inductor's copy; returns how many are others."""
    count, named = 0, given(graph)
    scatters = graph.find_nodes(op="call_function", target=aten.as_strided_scatter.default)
    for node in scatters if defended("offset-in-a-copy") else ():
        begin, offset = begin_of(node.args[0]), argument(node, "storage_offset")
        if begin == 0 or offset is None:
            continue
        relative = written_out(node, sympy.expand(number(offset) - begin), named)
        if relative is not None:
            node.args = (*(argument(node, n) for n in ("self", "src", "size", "stride")), relative)
            node.kwargs = {}
            count += 1
    return count


@functools.cache
def counts_from_inputs() -> bool:
    """Return whether Inductor counts an offset from where an input begins."""
    graph, mode = Graph(), _torch.new_fake_mode()
    with mode:
        given = torch.empty(8)[2:]
        named = torch.as_strided(given, [2], [1], 4)
    node = graph.placeholder("given")
    view = graph.call_function(aten.as_strided.default, (node, [2], [1], 4))
    graph.output((view,))
    node.meta["val"], view.meta["val"] = given, named
    try:
        lowered = lowered_graph(GraphModule(torch.nn.Module(), graph), mode, given)
        return bool(lowered.get_layout().offset == 4)
    except Exception as error:  # noqa: BLE001  (it works by another way then, and newer ones count right)
        log.debug("where Inductor counts offsets from could not be tried out: %s", error)
        return False
