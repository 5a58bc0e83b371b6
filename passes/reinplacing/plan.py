"""A plan for a graph and all subgraphs that it calls, decided bottom-up and carried out whole or not at all.

Subgraphs are planned on copies of their graphs; the copies take the place of the originals when everything
else went well. Inside a subgraph the placeholders belong to the caller, so nothing is written into them.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses

from torch.fx import Graph, GraphModule, Node

from ..errors import GraphError
from ..graph.find_layouts import known
from ..graph.summary import Summaries
from ..ops import higher_order
from ..report import Outcome, Report
from .decide.settle import decided
from .describe import describe
from .facts.decision import Decision
from .facts.model import calls_of
from .facts.options import Options
from .facts.premises import Calls
from .rewrite import apply


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What is done with a graph and with the subgraphs that it calls.

    Args:
        decision: for the graph itself.
        inner: the plans of the subgraphs, each for a copy of the subgraph's graph.
    """

    decision: Decision
    inner: dict[GraphModule, Plan]

    @property
    def graph(self) -> Graph:
        """The graph that is planned."""
        return self.decision.model.graph

    def report(self) -> Report:
        """Return the outcomes of all candidates; those of a subgraph stand where it is called first."""
        inside: dict[Node, tuple[Outcome, ...]] = {}
        names = {
            higher_order.subgraph(self.graph, n): str(n.target) for n in self.graph.find_nodes(op="get_attr")
        }
        told: set[GraphModule] = set()
        for call in higher_order.calls(self.graph):
            found: list[Outcome] = []
            for body in (*call.tests, *call.bodies):
                if body.module in self.inner and body.module not in told:
                    told.add(body.module)
                    inner = self.inner[body.module].report().outcomes
                    found.extend(_inside(names[body.module], outcome) for outcome in inner)
            inside[call.node] = tuple(found)
        return describe(self.decision, inside)

    def carry_out(self) -> None:
        """Rewrite the graph and its subgraphs.

        Raises:
            RewriteError: a rewrite failed; all graphs are as they were.
        """
        finished: dict[GraphModule, Graph] = {}
        self._rewrite_inner(finished)
        apply(self.decision)
        for module, graph in finished.items():
            module.graph = graph
            module.recompile()

    def _rewrite_inner(self, finished: dict[GraphModule, Graph]) -> None:
        """Rewrite the copies of all subgraphs, inner ones first, each once."""
        for module, plan in self.inner.items():
            if module not in finished:
                plan._rewrite_inner(finished)
                apply(plan.decision)
                finished[module] = plan.graph


def _inside(name: str, outcome: Outcome) -> Outcome:
    """Return an outcome of a subgraph as the graph that calls it names it."""
    return dataclasses.replace(outcome, graph=f"{name}.{outcome.graph}" if outcome.graph else name)


def copied(module: GraphModule) -> Graph:
    """Return a copy of a subgraph's graph that finds its attributes where the original does."""
    graph = copy.deepcopy(module.graph)
    graph.owning_module = module
    return graph


def alone(graph: Graph, options: Options) -> Plan:
    """Plan a graph without its subgraphs.

    Raises:
        GraphError: it is no functional graph.
    """
    return Plan(decided(graph, calls_of(graph, options), options), {})


def whole(root: Graph, options: Options) -> Plan:
    """Plan a graph and everything that it calls.

    Raises:
        GraphError: the graph itself is not functional; a subgraph that is not stays as it is.
    """
    summaries, values = Summaries(), known(root)
    found: dict[GraphModule, Plan | None] = {}

    def planned(graph: Graph) -> Plan:
        bodies = (body for call in higher_order.calls(graph) for body in (*call.bodies, *call.tests))
        modules = dict.fromkeys(body.module for body in bodies)
        for module in modules:
            if module not in found:
                found[module] = None  # a subgraph that calls itself stays as it is
                with contextlib.suppress(GraphError):
                    found[module] = planned(copied(module))
        calls = Calls(summaries, values, inner=graph is not root)
        inner = {module: plan for module in modules if (plan := found[module]) is not None}
        return Plan(decided(graph, calls, options), inner)

    return planned(root)
