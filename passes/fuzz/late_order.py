"""Random graphs written in a bad order: every pure reader runs as late as it can."""

from __future__ import annotations

import dataclasses

from torch.fx import Node

from ..graph.movable import is_barrier, is_movable
from ..reinplacing.facts.model import Model
from ..reinplacing.model.build import build
from .graph import RandomGraph


def delayed(graph: RandomGraph) -> RandomGraph:
    """Return a graph that computes the same, with its pure readers in front of their first users.

    So most values are read after the writes that replace them, and a pass that moves readers has work.
    No reader crosses an effect, or a real write into what it reads.
    """
    gm = graph.copy()
    model = build(gm.graph)
    fixed = {candidate.node for candidate in model.candidates}
    for node in reversed(list(gm.graph.nodes)):
        if node not in fixed and node.op == "call_function" and is_movable(node):
            _delay(model, node)
    gm.graph.lint()
    gm.recompile()
    return dataclasses.replace(graph, gm=gm)


def _delay(model: Model, node: Node) -> None:
    touched = {p.storage for _, p in model.operands((node.args, node.kwargs))}
    stops = {w.node for s in touched for w in model.writes.get(s, ())} | set(node.users)
    place = node.next
    while place.op != "output" and place not in stops and not is_barrier(place):
        place = place.next
    place.prepend(node)
