"""Writing scatters in place: by index, and through views."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from . import _torch, scatter
from .candidate import Candidate
from .rewriter import Rewriter
from .schema import argument, schema_of

aten: Any = torch.ops.aten


def index_put(rewriter: Rewriter, node: Node, candidate: Candidate) -> None:
    """Replace an ``index_put`` by one that writes, where its candidate is in place."""
    if not rewriter.is_in_place(candidate):
        return
    operand: Any = node.args[0]
    # Inductor's unchecked form applies an accumulation twice when it is run node by node.
    accumulates = argument(node, "accumulate") not in (None, False)
    unsafe = schema_of(node.target).name == "aten::_unsafe_index_put" and not accumulates
    target = _torch.unsafe_index_put_() if unsafe else aten.index_put_.default
    call = rewriter.emitter.call(node, target, node.args, node.kwargs)
    call.meta["val"] = operand.meta["val"]
    rewriter.replace(node, operand)


def view_scatter(rewriter: Rewriter, node: Node, candidate: Candidate) -> None:
    """Replace a view scatter by a copy into a view of its operand, or of a clone that offsets can name."""
    operand: Any = node.args[0]
    if rewriter.is_in_place(candidate):
        if candidate.index not in rewriter.decision.moved:
            _write_view(rewriter, node, candidate, operand)
    elif scatter.moves(rewriter.model, candidate.operand):
        # Views that name bytes by their offset need to know where they are.
        operand = rewriter.cloned(node, candidate, operand, node.meta["val"])
        _write_view(rewriter, node, candidate, operand)
    else:
        return
    rewriter.replace(node, operand)


def _write_view(rewriter: Rewriter, node: Node, candidate: Candidate, operand: Node) -> None:
    source, args = argument(node, "src"), list(node.args[2:])
    kwargs = {k: v for k, v in node.kwargs.items() if k != "src"}
    if scatter.is_absolute(node):
        accepted = rewriter.decision.accepted(candidate)
        place = candidate.operand if accepted else rewriter.model.place(node)
        moved = rewriter.moved(place)
        if moved:
            args = [argument(node, name) for name in ("size", "stride", "storage_offset")]
            args, kwargs = [*args[:2], rewriter.emitter.moved(node, args[0], args[2], moved)], {}
    view = rewriter.emitter.view(node, scatter.view_of(node), (operand, *args), kwargs)
    copy = rewriter.emitter.call(node, aten.copy_.default, (view, source))
    copy.meta["val"] = view.meta["val"]
