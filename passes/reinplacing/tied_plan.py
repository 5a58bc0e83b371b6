"""Subgraphs that may leave a result in the bytes of an operand: branches, called subgraphs, loop bodies.

A result is *tied* to an operand by writing it back at the end of the subgraph, like any epilogue, and
returning the operand: a subgraph in that form computes the same, and its operand then holds the result. The
tie is kept iff every write-back turns out to be an identity, in every subgraph that makes the result. So
swapped carries, a result that is made anew, and an operand that is read after the write stay functional.

Whether a caller's operand may be written is the caller's decision, one for each call: where it must not be,
one copy is made before the call instead of one or more inside (in a loop: at each iteration). A tensor
that a loop captures is never written: iterations repeat, so its old value is always needed again.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from .. import _torch
from ..errors import GraphError
from ..graph.find_layouts import known
from ..graph.summary import Summaries
from ..memory.geometry import Geometry
from ..memory.region import Region
from ..ops import higher_order
from ..reason import Reason
from .decide.settle import decided
from .facts import price
from .facts.calls import Calls, Tie
from .facts.decision import Decision
from .facts.options import Options
from .facts.place import Place, reads_alike
from .kinds.call import is_understood
from .plan import Plan, copied, shared

Pair = tuple[int, int]  # a result, and the placeholder it is tied to
Tied = tuple[Plan, dict[Pair, Node]]  # a subgraph that writes results back, and the writes that cost nothing


def plan(root: Graph, options: Options) -> Plan:
    """Plan a graph and everything that it calls.

    Raises:
        GraphError: the graph itself is not functional; a subgraph that is not stays as it is.
    """
    return _Planner(root, options).plan(root)


class _Planner:
    def __init__(self, root: Graph, options: Options) -> None:
        self._options = options
        self._shared = shared(root)
        self._summaries = Summaries()
        self._functional: dict[GraphModule, Plan | None] = {}
        self._known: dict[tuple[GraphModule, tuple[Pair, ...]], Tied | None] = {}
        self._root = root
        self._values = known(root)

    def plan(self, graph: Graph) -> Plan:
        """Plan a graph: its subgraphs first."""
        inner: dict[GraphModule, Plan] = {}
        ties: dict[Node, tuple[Tie, ...]] = {}
        users = _users(graph)
        for group in users.values():
            modules = list(dict.fromkeys(b.module for call in group for b in call.bodies))
            if ties.keys() & {call.node for call in group}:
                continue
            # Subgraphs are rewritten for all of their calls, so nobody else may call them.
            tied = self._tied(group, modules) if all(users[m] == group for m in modules) else None
            if tied is not None:
                inner.update(tied[0])
                ties.update(tied[1])
        calls = Calls(self._summaries, self._values, ties, inner=graph is not self._root)
        decision = decided(graph, calls, self._options)
        told = {(c.node, c.slot) for c in decision.model.candidates}
        if any((node, tie.result) not in told for node, tied in ties.items() for tie in tied):
            # The graph's own model left a tie out: a write that nobody would have looked at.
            calls = dataclasses.replace(calls, ties={})
            inner, decision = {}, decided(graph, calls, self._options)
        for module in users:
            functional = self.functional(module)
            if module not in inner and functional is not None:
                inner[module] = functional
        return Plan(decision, inner)

    def functional(self, module: GraphModule) -> Plan | None:
        """Plan a subgraph whose operands are not written; ``None`` where it cannot be planned."""
        if module not in self._functional:
            self._functional[module] = None  # a subgraph that calls itself stays as it is
            self._functional[module] = self._planned(copied(module))
        return self._functional[module]

    def _planned(self, graph: Graph) -> Plan | None:
        try:
            return self.plan(graph)
        except GraphError:
            return None

    def _tied(
        self, group: list[higher_order.Call], modules: list[GraphModule]
    ) -> tuple[dict[GraphModule, Plan], dict[Node, tuple[Tie, ...]]] | None:
        """Return the plans of tied subgraphs and the ties of their calls, ``None`` without any."""
        functional = [p for p in map(self.functional, modules) if p is not None]
        if len(functional) != len(modules) or not self._may_be_tied(group, modules):
            return None
        pairs = [p for p in _pairs(group[0], functional) if all(_is_eligible(call, *p) for call in group)]
        while pairs:
            plans = [self._with_epilogues(module, pairs) for module in modules]
            kept = [p for p in pairs if all(found is not None and p in found[1] for found in plans)]
            if kept == pairs:
                tied = {m: found[0] for m, found in zip(modules, plans, strict=True) if found is not None}
                ranks = [price.summed(p.rank for p in plans) for plans in (tied.values(), functional)]
                if ranks[0].copied > ranks[1].copied:
                    return None
                return tied, {call.node: _ties(call, pairs, tied.values()) for call in group}
            pairs = kept
        return None

    def _may_be_tied(self, group: list[higher_order.Call], modules: list[GraphModule]) -> bool:
        """Return whether a group of calls is understood, and results share nothing as it is."""
        if any(module in self._shared for module in modules):
            return False
        if not all(is_understood(call, self._summaries) for call in group):
            return False
        if any(len(call.bodies) > 1 or call.tests for call in group) and len(group) > 1:
            return False
        if any(call.stacked and not (call.carried and _torch.scan_runs_each_step_once()) for call in group):
            return False
        if any(b.module in modules for call in group for b in call.tests):
            return False
        if not all(_is_item(user) for call in group for user in call.node.users):
            return False
        for module in modules:
            summary = self._summaries.of(module)
            if summary is None or not all(map(summary.is_fresh, range(len(summary.outputs)))):
                return False
        return True

    def _with_epilogues(self, module: GraphModule, pairs: list[Pair]) -> Tied | None:
        """Plan a subgraph that writes results back.

        Once: each way to plan the graph around it asks again, which for nested loops are many.
        """
        key = module, tuple(pairs)
        if key not in self._known:
            self._known[key] = self._tied_plan(module, pairs)
        return self._known[key]

    def _tied_plan(self, module: GraphModule, pairs: list[Pair]) -> Tied | None:
        graph = copied(module)
        placeholders = graph.find_nodes(op="placeholder")
        output = next(n for n in reversed(graph.nodes) if n.op == "output")
        results = list(output.args[0])
        epilogues: dict[Pair, Node] = {}
        for result, number in pairs:
            operand = placeholders[number]
            with graph.inserting_before(output):
                write = graph.call_function(torch.ops.aten.copy_.default, (operand, results[result]))
            write.meta["val"] = operand.meta["val"]
            epilogues[result, number] = write
            results[result] = operand
        output.args = (type(output.args[0])(results), *output.args[1:])
        found = self._planned(graph)
        if found is None:
            return None
        return found, {pair: n for pair, n in epilogues.items() if n in found.decision.erased}


def _is_item(node: Node) -> bool:
    """Return whether a node takes one result of a call."""
    if node.op != "call_function" or node.target is not operator.getitem:
        return False
    return isinstance(node.args[1], int) and node.args[1] >= 0


def _users(graph: Graph) -> dict[GraphModule, list[higher_order.Call]]:
    """Return the calls that run each subgraph."""
    users: dict[GraphModule, list[higher_order.Call]] = {}
    for call in higher_order.calls(graph):
        for module in dict.fromkeys(body.module for body in (*call.bodies, *call.tests)):
            users.setdefault(module, []).append(call)
    return users


def _pairs(call: higher_order.Call, plans: list[Plan]) -> list[Pair]:
    """Return which result may be left in which operand: carries in their own, others where they come from."""
    count = len(higher_order.outputs(plans[0].graph) or ())
    if call.carried:
        return [(i, i) for i in range(min(call.carried, count))]
    pairs: list[Pair] = []
    for result in range(count):
        came = {_comes_from(plan.decision, result) for plan in plans}
        number = came.pop()
        if not came and number is not None and all(number != n for _, n in pairs):
            pairs.append((result, number))
    return pairs


def _comes_from(decision: Decision, result: int) -> int | None:
    """Return the placeholder that a result is a new version of, laid out alike.

    Where the functional result has to begin elsewhere: with the tie it is the placeholder that is returned.
    """
    model = decision.model
    returned = (higher_order.outputs(model.graph) or [])[result]
    place = model.place(returned)
    if place is None:
        return None
    storage = place.storage
    while storage in model.made_by and model.made_by[storage].obstacle in (None, Reason.LAYOUT):
        storage = model.made_by[storage].operand.storage
    placeholders: list[Any] = model.graph.find_nodes(op="placeholder")
    owner = model.place(storage.node)
    if storage.node not in placeholders or owner is None or not reads_alike(place.value, owner.value):
        return None
    if not model.geometry.same_layout(place.region, owner.region):
        return None
    return placeholders.index(storage.node)


def _is_eligible(call: higher_order.Call, result: int, number: int) -> bool:
    """Return whether an operand could take the place of a result: nobody could tell by the layout."""
    body = call.bodies[0]
    operand, results = call.value(body.operands[number]), call.node.meta.get("val")
    given, inner = (
        higher_order.value_of(operand),
        higher_order.value_of(body.module.graph.find_nodes(op="placeholder")[number]),
    )
    if number in body.sliced or given is None or inner is None or not isinstance(results, list | tuple):
        return False
    made = results[result]
    if not isinstance(made, torch.Tensor) or not reads_alike(given, made) or given.device != made.device:
        return False
    geometry = Geometry(getattr(_torch.fake_mode_of([given]), "shape_env", None))
    region = Region.of(given)
    alike = all(geometry.same_layout(Region.of(t), region) for t in (inner, made))
    return alike and isinstance(given.storage_offset(), int) and not geometry.self_overlapping(region)


def _ties(call: higher_order.Call, pairs: list[Pair], plans: Iterable[Plan]) -> tuple[Tie, ...]:
    plans = list(plans)
    operands = call.bodies[0].operands
    return tuple(Tie(result, operands[number], _written(plans, number)) for result, number in pairs)


def _written(plans: list[Plan], number: int) -> tuple[Region, ...] | None:
    """Return the bytes of an operand that subgraphs write, relative to its first; ``None`` for all."""
    found: dict[Region, None] = {}
    for plan in plans:
        decision = plan.decision
        operand = decision.model.place(plan.graph.find_nodes(op="placeholder")[number])
        if not isinstance(operand, Place):
            return None
        for candidate in decision.edge.values():
            if decision.root(candidate.operand.storage) is not operand.storage:
                continue
            if candidate.index in decision.already_there:
                continue
            for region in candidate.writes:
                if not (region.static and operand.region.static):
                    return None
                found[region.shifted(-operand.region.offset)] = None
    return tuple(found)
