"""Random functional graphs for fuzzing passes: by seed, and as a Hypothesis strategy.

The graphs hold integers and adversarial operators only, so a wrong rewrite differs exactly and always.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import random_graph as _random_graph
from .draws import Draws, shrunk
from .errors import ReinplaceError
from .random_graph import RandomGraph

__all__ = ["RandomGraph", "functional_graphs", "random_graph", "replayed", "shrunk"]


def random_graph(seed: int) -> RandomGraph:
    """Return the functional graph of a seed; it has at least one candidate."""
    for attempt in range(1000):
        graph = _random_graph.build(Draws.seeded(seed + (attempt << 40)))
        if graph is not None:
            return graph
    raise ReinplaceError(f"expected a graph from seed {seed}, found none in 1000 attempts")


def replayed(choices: Sequence[int]) -> RandomGraph:
    """Return the graph that these choices build.

    Raises:
        ReinplaceError: they lead to no graph with a candidate.
    """
    graph = _random_graph.build(Draws.replayed(choices))
    if graph is None:
        raise ReinplaceError("these choices build no graph with a candidate")
    return graph


def functional_graphs() -> Any:
    """Return a Hypothesis strategy of ``RandomGraph``; failing ones shrink to few nodes.

    Raises:
        ReinplaceError: Hypothesis is not installed.
    """
    try:
        from hypothesis import assume
        from hypothesis import strategies as st
    except ImportError as error:
        raise ReinplaceError(
            "functional_graphs() needs Hypothesis, which is not installed: pip install hypothesis"
        ) from error

    @st.composite
    def drawn(draw: Any) -> RandomGraph:
        graph = _random_graph.build(Draws(lambda n: int(draw(st.integers(0, n - 1)))))
        assume(graph is not None)
        assert graph is not None
        return graph

    return drawn()
