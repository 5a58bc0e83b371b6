"""What is known about the calls of subgraphs in one graph."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from torch.fx import Graph, Node

from ...graph.spread import Names
from ...graph.summary import Summaries
from ...memory.region import Region
from ...ops import higher_order


class Strides(NamedTuple):
    """The values of a graph and of those it calls whose strides may be others than is told.

    Args:
        untold: those of which any may be.
        guessed: those of which only strides of dimensions of one may be.
    """

    untold: Names
    guessed: Names

    def untold_in(self, graph: Graph) -> frozenset[str]:
        """Return the untold values of a graph."""
        return self.untold.get(graph.owning_module, frozenset())

    def guessed_in(self, graph: Graph) -> frozenset[str]:
        """Return the values of a graph whose strides of dimensions of one are guessed."""
        return self.guessed.get(graph.owning_module, frozenset())


@dataclasses.dataclass(frozen=True, slots=True)
class Tie:
    """A result that all subgraphs of a call leave in the bytes of one operand.

    Args:
        result: the number of the result.
        slot: the operand.
        writes: the bytes that are written, relative to the first one of the operand; ``None`` for all.
    """

    result: int
    slot: higher_order.Slot
    writes: tuple[Region, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Calls:
    """What is known about the calls of subgraphs in one graph.

    Args:
        summaries: of the subgraphs.
        ties: of the calls whose subgraphs write operands in place.
        pinned: whether what the graph returns must begin at the offset that it has.
        inner: whether another graph calls this one, and goes by the strides of what it returns.
        hidden: whether offsets name bytes of what may begin elsewhere: then everything stays functional.
        strides: the values of all graphs whose strides may be others than is told.
    """

    summaries: Summaries
    ties: dict[Node, tuple[Tie, ...]] = dataclasses.field(default_factory=dict)
    pinned: bool = False
    inner: bool = False
    hidden: bool = False
    strides: Strides = dataclasses.field(default_factory=lambda: Strides({}, {}))
