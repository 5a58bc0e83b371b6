"""What is known about the calls of subgraphs in one graph."""

from __future__ import annotations

import dataclasses

from torch.fx import Node

from ...graph.layouts import Known
from ...graph.summary import Summaries
from ...memory.region import Region
from ...ops import higher_order


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
        known: of the values of all graphs.
        ties: of the calls whose subgraphs write operands in place.
        inner: whether another graph calls this one, and goes by the strides of what it returns, and by where
            it begins.
    """

    summaries: Summaries
    known: Known
    ties: dict[Node, tuple[Tie, ...]] = dataclasses.field(default_factory=dict)
    inner: bool = False
