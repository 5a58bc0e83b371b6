"""What is known about the calls of subgraphs in one graph."""

from __future__ import annotations

import dataclasses

from ...graph.layouts import Known
from ...graph.summary import Summaries


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
