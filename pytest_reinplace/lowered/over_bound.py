"""Whether measured calls hold more than so many times their lower bound, and what is said then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base.wording import bytes_of
from .memory import Memory
from .told import at_peak, equation, lower_bound

LIMIT = "max_peak_over_bound"


def unknown(found: Sequence[Memory], backend: str) -> str:
    """Return why there is no lower bound to hold peaks against; empty where there is."""
    if backend == "graph":
        return (
            "there is no lower bound, since no program of Inductor ran: backend graph lowers nothing; "
            'mark the test reinplace(backend="inductor")'
        )
    if not found:
        calls = "reinplace.run(fn, *args) and assert_peak(fn, *args)"
        return f"nothing was measured: {LIMIT} limits the calls of {calls}"
    if not all(one.programs for one in found):
        return "there is no lower bound of a measured call: no program of Inductor ran in it"
    problems = ((one.graph, one.problem) for memory in found for one in memory.programs if one.problem)
    return next((f"the lower bound of {graph} is not known: {problem}" for graph, problem in problems), "")


def excess(found: Sequence[Memory], most: float) -> Iterator[str]:
    """Yield which calls hold more than ``most`` times their lower bound, each with what it holds."""
    for one in found:
        if one.measured <= most * one.bound:
            continue
        how = "above" if one.over_bound is None else f"{one.over_bound:.4g} times"
        text = f"the peak, {bytes_of(one.measured)}, is {how} its lower bound, {bytes_of(one.bound)}"
        yield f"{text}; the limit is {LIMIT}={most}"
        yield from (f"  {line}" for line in (equation(one), *lower_bound(one), *at_peak(one)))
