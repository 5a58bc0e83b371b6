"""The two entry points: decide and rewrite, or decide only."""

from __future__ import annotations

import torch
from torch.fx import Graph, GraphModule

from . import plan, tie, wellformed
from .errors import GraphError
from .report import Report


def reinplace(gm: GraphModule) -> Report:
    """Rewrite a functional graph so that its operators write in place wherever that is invisible.

    The graph run as it was is the specification: afterwards every output has the same values, shape and
    strides, every input ends with the same values, and storage is shared exactly where it was. Subgraphs
    that the graph calls (``cond``, ``while_loop``, ``scan``, ``map``, ``invoke_subgraph``) are rewritten
    with it.

    Args:
        gm: a functional graph as AOTAutograd gives it to the post-grad stage; changed in place and
            recompiled.

    Returns:
        What was decided, one outcome per candidate.

    Raises:
        GraphError: it is no such graph; it is left as it was.
        RewriteError: the rewrite failed; the graph is as it was before.
    """
    graph = _graph_of(gm)
    if isinstance(gm, GraphModule):
        wellformed.check_code(graph)
    planned = tie.plan(graph)
    report = planned.report()
    planned.carry_out()
    if isinstance(gm, GraphModule):
        gm.recompile()
    return report


def reinplace_graph(graph: Graph, *, lowered: bool = False) -> Report:
    """Do the work of :func:`reinplace` on one bare graph, which Inductor will lower if ``lowered``.

    Subgraphs stay as they are: Inductor has had each of them rewritten before.
    """
    planned = plan.alone(graph, lowered=lowered)
    report = planned.report()
    planned.carry_out()
    return report


def analyze(gm: GraphModule, *, nested: bool = True) -> Report:
    """Return what :func:`reinplace` would decide; the graph is not touched.

    Args:
        gm: a functional graph.
        nested: whether to look into the subgraphs that it calls; if not, none of them writes an operand.

    Raises:
        GraphError: it is no functional graph.
    """
    graph = _graph_of(gm)
    return (tie.plan(graph) if nested else plan.alone(graph)).report()


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
