"""The two entry points: decide and rewrite, or decide only."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch.fx import Graph, GraphModule, Node

from .decide import Decision
from .describe import describe
from .errors import GraphError, ReinplaceError
from .model import Model
from .report import Report
from .rewrite import apply
from .search import best, unplaced
from .unlock import unlocked

Ordering = Literal["free", "keep"]


def reinplace(gm: GraphModule, *, order: Ordering = "free") -> Report:
    """Rewrite a functional graph so that its operators write in place wherever that is invisible.

    The graph run as it was is the specification: afterwards every output has the same values, shape and
    strides, every input ends with the same values, and storage is shared exactly where it was.

    Args:
        gm: a functional graph as AOTAutograd gives it to the post-grad stage; changed in place and
            recompiled.
        order: ``"free"``: readers of an old value may move in front of the write that replaces it, where
            that saves a copy; ``"keep"``: the nodes keep their order.

    Returns:
        What was decided, one outcome per candidate.

    Raises:
        GraphError: it is no such graph; it is left as it was.
        RewriteError: the rewrite failed; the graph is as it was before.
    """
    report = reinplace_graph(_graph_of(gm), order=order)
    gm.recompile()
    return report


def reinplace_graph(graph: Graph, *, lowered: bool = False, order: Ordering = "free") -> Report:
    """Do the work of :func:`reinplace` on a bare graph, which Inductor will lower if ``lowered``."""
    decision = _decided(graph, lowered=lowered, order=order)
    report = describe(decision)
    apply(decision)
    return report


def analyze(gm: GraphModule, *, order: Ordering = "free") -> Report:
    """Return what :func:`reinplace` would decide with the same arguments; the graph is not touched.

    Raises:
        GraphError: it is no functional graph.
    """
    return describe(_decided(_graph_of(gm), order=order))


def _decided(graph: Graph, *, lowered: bool = False, order: Ordering = "free") -> Decision:
    if order not in get_args(Ordering):
        raise ReinplaceError(f"expected order to be one of {get_args(Ordering)}, got {order!r}")
    aside: frozenset[Node] = frozenset()
    while True:
        decision = best(Model(graph, lowered=lowered, aside=aside))
        if order == "free":
            decision = unlocked(decision)
        more = unplaced(decision) - aside
        if not more:
            return decision
        aside |= more


def _graph_of(gm: object) -> Graph:
    if isinstance(gm, GraphModule):
        return gm.graph
    if isinstance(gm, Graph):
        return gm
    if isinstance(gm, torch.nn.Module):
        raise GraphError(
            f"expected a torch.fx.GraphModule, got the module {type(gm).__name__}; use "
            "torch.compile(module, options=inductor_options()), or trace it with make_fx first"
        )
    raise GraphError(f"expected a torch.fx.GraphModule, got {type(gm).__name__}")
