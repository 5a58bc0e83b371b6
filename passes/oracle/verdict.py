"""A pass held against one random graph: its rewrite is run, and its bytes are held against the optimum."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule

from .. import _torch
from ..fuzz.graph import RandomGraph
from ..ops import higher_order
from ..reinplacing.run import reinplace
from ..report import Report
from ..verify.equivalence import EquivalenceError, assert_equivalent
from ..verify.optimum.search import copied_bytes, minimum_clone_bytes

Pass = Callable[[GraphModule], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What the oracle found for one graph.

    Args:
        problem: ``None``, or how the rewrite is wrong: ``"output"``, ``"input"``, ``"alias"``, ``"error"``.
        message: the first difference.
        before: bytes that the functional graph copies.
        after: bytes that the rewritten graph copies.
        least: bytes that the cheapest legal rewrite copies while the nodes keep their order; more than
            ``after`` when the pass moved readers and copies less than any order-keeping rewrite.
        searched: whether the bytes mean anything: in graphs that call subgraphs only the contract is checked.
    """

    problem: str | None = None
    message: str = ""
    before: int = 0
    after: int = 0
    least: int = 0
    searched: bool = True


def judged(
    graph: RandomGraph, one_pass: Pass = reinplace, *, optimum: bool = True, least: int | None = None
) -> Verdict:
    """Rewrite a copy of a graph, check the contract, and search the cheapest legal rewrite.

    Args:
        graph: the graph, which is left as it is.
        one_pass: rewrites a ``GraphModule``.
        optimum: whether to search; else what the pass reached counts as the least.
        least: the bytes of the cheapest legal rewrite, where they are known.
    """
    rewritten = graph.copy()
    try:
        with _torch.expecting_refusal():  # what it raises is told in the verdict
            report = one_pass(rewritten)
        rewritten.graph.lint()
        assert_equivalent(graph.gm, rewritten, graph.inputs)
    except EquivalenceError as error:
        return Verdict(error.kind, str(error))
    except Exception as error:  # noqa: BLE001  (whatever a pass raises is a finding)
        return Verdict("error", f"{type(error).__name__}: {error}")
    if next(higher_order.calls(graph.gm.graph), None) is not None:
        return Verdict(searched=False)
    before, after = copied_bytes(graph.gm), copied_bytes(rewritten, graph.gm)
    if least is None:
        # With nodes moved the rewrite may copy less than any that keeps the order: the search has no bound.
        moved = isinstance(report, Report) and any(o.moved for o in report.outcomes)
        bound = None if moved else after
        least = minimum_clone_bytes(graph.gm, graph.inputs, below=bound) if optimum else after
    elif not (isinstance(report, Report) and any(o.moved for o in report.outcomes)):
        least = min(least, after)
    return Verdict(None, "", before, after, least)
