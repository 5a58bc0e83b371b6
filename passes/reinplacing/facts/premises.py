"""What a graph is decided under: what earlier decisions about it taught, and what is known of its calls."""

from __future__ import annotations

import dataclasses
from typing import Any

from torch.fx import Node

from ...graph.layouts import Known
from ...graph.summary import Summaries


@dataclasses.dataclass(frozen=True, slots=True)
class Premises:
    """What is taken as given when a model is made.

    Args:
        aside: wrappers and calls that stay functional: their clones could not be placed, or offsets name in
            them what is not known.
        own_layout: operators whose results keep the strides they have as written: laid out like their
            operands they were refused.
        order: another order of the nodes to go by; the graph itself is not touched.
    """

    aside: frozenset[Node] = frozenset()
    own_layout: frozenset[Node] = frozenset()
    order: Order | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """Another order of a graph's nodes.

    Args:
        nodes: all nodes, in the new order.
        reordered: for each write that something moved in front of, what moved, in order.
        unlocks: the readers for whose sake it moved, of those that stay the views, by candidate: its node
            and its slot.
    """

    nodes: tuple[Node, ...]
    reordered: dict[Node, tuple[Node, ...]]
    unlocks: dict[tuple[Node, Any], tuple[Node, ...]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Calls:
    """What is known about the calls of subgraphs in one graph.

    Args:
        summaries: of the subgraphs.
        known: of the values of all graphs.
        inner: whether another graph calls this one, and goes by the strides of what it returns, and by where
            it begins.
    """

    summaries: Summaries
    known: Known
    inner: bool = False
