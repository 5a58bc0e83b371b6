"""Copies of views of what is not in memory: they are computed apart from the loop that stores them.

Before a buffer is written Inductor puts all into memory that reads it, but the loop that a copy stores is
made before that where its source is a view: it computes the source anew, from the buffer that it overwrites.
(``x[:, 1:3] = x.flip(0)[:, 1:3]`` reads what it has just stored.) A clone of the view is a value like others:
it is put into memory if it reads the buffer, and is part of the loop if it does not, or reads each element
right before it is overwritten. Complex values have kernels, which are called with what is in memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.alias import bases
from ...graph.emit import Emitter
from ..defects import defended
from ..lowering import is_put_off

aten: Any = torch.ops.aten


def clone_sources(graph: Graph) -> None:
    """Give each copy a value of its own to store."""
    copies = graph.find_nodes(op="call_function", target=aten.copy_.default)
    if not copies or not defended("view-in-its-own-copy"):
        return
    roots, stored, emitter = bases(graph), dict[Node, bool](), Emitter(graph)
    for copy in copies:
        source: Any = copy.args[1]
        if roots[source] is source or any(n.meta["val"].is_complex() for n in copy.all_input_nodes):
            continue
        if is_put_off(roots[source], stored):
            copy.update_arg(1, emitter.view(copy, aten.clone.default, (source,)))
