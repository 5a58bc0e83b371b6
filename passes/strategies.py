"""Random functional graphs for fuzzing passes: by seed, and as a Hypothesis strategy.

The graphs hold integers and adversarial operators only, so a wrong rewrite differs exactly and always.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import ReinplaceError
from .fuzz.draws import Draws
from .fuzz.graph import RandomGraph, build
from .verify.shrink import shrunk

__all__ = ["RandomGraph", "functional_graphs", "random_graph", "replayed", "shrunk"]


def random_graph(seed: int, *, wild: bool = False) -> RandomGraph:
    """Return the functional graph of a seed; it has at least one candidate.

    Args:
        seed: any number.
        wild: whether it may hold what models rarely do: views that hide what they are (``einsum``,
            ``unsafe_split``, ``contiguous``), tensors without elements, subgraphs three calls deep.
    """
    for attempt in range(1000):
        graph = build(Draws.seeded(seed + (attempt << 40), wild=wild))
        if graph is not None:
            return graph
    raise ReinplaceError(f"expected a graph from seed {seed}, found none in 1000 attempts")


def replayed(choices: Sequence[int], *, wild: bool = False) -> RandomGraph:
    """Return the graph that these choices build.

    Args:
        choices: those of a ``RandomGraph``.
        wild: as it was.

    Raises:
        ReinplaceError: they lead to no graph with a candidate.
    """
    graph = build(Draws.replayed(choices, wild=wild))
    if graph is None:
        raise ReinplaceError("these choices build no graph with a candidate")
    return graph


def functional_graphs(*, wild: bool = False) -> Any:
    """Return a Hypothesis strategy of ``RandomGraph``; failing ones shrink to few nodes.

    Args:
        wild: as for ``random_graph``.

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
        graph = build(Draws(lambda n: int(draw(st.integers(0, n - 1))), wild=wild))
        assume(graph is not None)
        assert graph is not None
        return graph

    return drawn()
