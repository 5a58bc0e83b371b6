"""The two entry points: decide and rewrite, or decide only."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.fx import Graph, GraphModule

from .. import _torch
from ..errors import GraphError
from ..graph import wellformed
from ..graph.collector import paused
from ..graph.sizes import shape_env_of
from ..report import Report
from . import plan
from .facts.decision import Decision
from .facts.options import DEFAULT, Options, Ordering, Policy
from .layout.true_values import with_true_values

Planner = Callable[[Graph, Options], plan.Plan]
Teller = Callable[[Decision], object]


@paused()
def reinplace(gm: GraphModule, *, policy: Policy = "memory", order: Ordering = "free") -> Report:
    """Rewrite a functional graph so that its operators write in place wherever that is invisible.

    The graph run as it was is the specification: afterwards every output has the same values, shape and
    strides, every input ends with the same values, and storage is shared exactly where it was. Subgraphs
    that the graph calls (``cond``, ``while_loop``, ``scan``, ``map``, ``invoke_subgraph``) are rewritten
    with it.

    Args:
        gm: a functional graph as AOTAutograd gives it to the post-grad stage; changed in place and
            recompiled.
        policy: ``"memory"``: hold and copy the fewest bytes; ``"speed"``: for a compiler that fuses
            elementwise operators, leave view scatters functional where it computes them on the way;
            ``"peak"``: as ``"memory"`` for a graph alone. Inside Inductor it weighs two schedules by what
            they hold, where ``"memory"`` weighs what they move as well.
        order: ``"free"``: readers of an old value may move in front of the write that replaces it, where
            that saves a copy; ``"keep"``: the nodes keep their order.

    Returns:
        What was decided, one outcome per candidate.

    Raises:
        GraphError: it is no such graph; it is left as it was.
        ReinplaceError: an option has another value.
        RewriteError: the rewrite failed; the graph is as it was before.
    """
    options = Options(policy, order)
    graph = _graph_of(gm)
    if isinstance(gm, GraphModule):
        wellformed.check_code(graph)
    report = _planned(graph, options, plan.whole, carry_out=True)
    if isinstance(gm, GraphModule):
        gm.recompile()
    return report


@paused()
def reinplace_graph(graph: Graph, options: Options = DEFAULT, tell: Teller = id) -> Report:
    """Do the work of ``reinplace`` on one bare graph, once ``tell`` was told what is decided.

    Subgraphs stay as they are: Inductor has had each of them rewritten before.

    Args:
        graph: a functional graph.
        options: what to prefer, and what will run the rewritten graph.
        tell: is told each decision; returns ``False`` where it changed the graph, which is decided anew then.
    """

    def planner(graph: Graph, options: Options) -> plan.Plan:
        while True:
            planned = plan.alone(graph, options)
            if tell(planned.decision) is not False:
                return planned

    return _planned(graph, options, planner, carry_out=True)


@paused()
def analyze(gm: GraphModule, *, policy: Policy = "memory", order: Ordering = "free") -> Report:
    """Return what ``reinplace`` would decide with the same arguments; the graph is not touched.

    Raises:
        GraphError: it is no functional graph.
        ReinplaceError: an option has another value.
    """
    options = Options(policy, order)
    return _planned(_graph_of(gm), options, plan.whole, carry_out=False)


@paused()
def analyze_graph(graph: Graph, options: Options = DEFAULT) -> Report:
    """Return what is decided for one bare graph, without the subgraphs that it calls; nothing is touched.

    Args:
        graph: a functional graph.
        options: what to prefer, and whether Inductor will lower the rewritten graph.

    Raises:
        GraphError: it is no functional graph.
    """
    return _planned(graph, options, plan.alone, carry_out=False)


def _planned(graph: Graph, options: Options, planner: Planner, *, carry_out: bool) -> Report:
    """Plan a graph on its true values, and carry the plan out if wanted; returns what is in it.

    What is not known of sizes is not asked for while it is planned. What is written then may ask for it, as
    torch does when it runs the same operators.
    """

    def work() -> Report:
        with _torch.untouched(shape_env_of(graph)):
            planned = planner(graph, options)
        report = planned.report()
        if carry_out:
            planned.carry_out()
        return report

    return with_true_values(graph, work, lowered=options.target.makes_as_told, keep=carry_out)


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
