"""The oracle: a pass against random graphs, its rewrites run, and its bytes held against the optimum.

``python -m pytest_reinplace.passes.oracle --graphs 20000 --seed 0``
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.fx import GraphModule

from .draws import shrunk
from .equivalence import EquivalenceError, assert_equivalent
from .errors import ReinplaceError
from .optimum import copied_bytes, minimum_clone_bytes
from .random_graph import RandomGraph
from .random_order import delayed
from .reinplace import reinplace
from .report import Report
from .strategies import random_graph, replayed

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
    """

    problem: str | None = None
    message: str = ""
    before: int = 0
    after: int = 0
    least: int = 0


@dataclasses.dataclass(slots=True)
class Tally:
    """The verdicts of many graphs.

    Args:
        graphs: how many.
        wrong: seeds whose rewrite breaks the contract.
        above: seeds whose rewrite copies more than the cheapest one that keeps the order.
        removable: bytes that the cheapest rewrites that keep the order remove.
        removed: bytes that the pass removed of these.
        moved: graphs in which it copies less than any of them, because it moved readers.
        beyond: how many bytes less.
    """

    graphs: int = 0
    wrong: list[tuple[int, Verdict]] = dataclasses.field(default_factory=list)
    above: list[tuple[int, Verdict]] = dataclasses.field(default_factory=list)
    removable: int = 0
    removed: int = 0
    moved: int = 0
    beyond: int = 0

    def add(self, seed: int, verdict: Verdict) -> None:
        """Count one graph."""
        self.graphs += 1
        if verdict.problem is not None:
            self.wrong.append((seed, verdict))
            return
        self.removable += verdict.before - verdict.least
        self.removed += verdict.before - max(verdict.after, verdict.least)
        self.moved += verdict.after < verdict.least
        self.beyond += max(0, verdict.least - verdict.after)
        if verdict.after > verdict.least:
            self.above.append((seed, verdict))

    @property
    def percentage(self) -> float:
        """Bytes removed, in per cent of those that any legal rewrite can remove that keeps the order.

        What moving readers saves beyond that is counted apart: nobody searched the optimum of all orders.
        """
        return 100.0 * self.removed / self.removable if self.removable else 100.0

    def __str__(self) -> str:
        alias = sum(v.problem == "alias" for _, v in self.wrong)
        return (
            f"graphs {self.graphs}  wrong {len(self.wrong) - alias}  alias-wrong {alias}  "
            f"bytes removable {self.removable}  removed {self.removed}  ({self.percentage:.2f} %)  "
            f"not optimal {len(self.above)}" + self._moves
        )

    @property
    def _moves(self) -> str:
        return f"  beyond the order as written {self.beyond} B in {self.moved}" if self.moved else ""


def judged(graph: RandomGraph, one_pass: Pass = reinplace, *, optimum: bool = True) -> Verdict:
    """Rewrite a copy of a graph, check the contract, and search the cheapest legal rewrite."""
    rewritten = graph.copy()
    try:
        report = one_pass(rewritten)
        rewritten.graph.lint()
        assert_equivalent(graph.gm, rewritten, graph.inputs)
    except EquivalenceError as error:
        return Verdict(error.kind, str(error))
    except Exception as error:  # noqa: BLE001  (whatever a pass raises is a finding)
        return Verdict("error", f"{type(error).__name__}: {error}")
    before, after = copied_bytes(graph.gm), copied_bytes(rewritten, graph.gm)
    # With nodes moved the rewrite may copy less than any that keeps the order: then the search has no bound.
    moved = isinstance(report, Report) and any(o.moved for o in report.outcomes)
    bound = None if moved else after
    least = minimum_clone_bytes(graph.gm, graph.inputs, below=bound) if optimum else after
    return Verdict(None, "", before, after, least)


def tallied(
    seeds: Iterator[int] | Sequence[int], one_pass: Pass = reinplace, *, late: bool = False, **options: Any
) -> Tally:
    """Judge the graphs of many seeds; with ``late``, written so that values are read as late as possible."""
    tally = Tally()
    for seed in seeds:
        graph = random_graph(seed)
        tally.add(seed, judged(delayed(graph) if late else graph, one_pass, **options))
    return tally


def kept(gm: GraphModule) -> Report:
    """Rewrite a graph and leave its nodes in their order."""
    return reinplace(gm, order="keep")


def compared(seeds: Sequence[int], *, late: bool) -> str:
    """Return what moving readers saves: the bytes that are copied with and without it."""
    before = fixed = free = moved = 0
    for seed in seeds:
        graph = delayed(random_graph(seed)) if late else random_graph(seed)
        one, two = (judged(graph, p, optimum=False) for p in (kept, reinplace))
        before, fixed, free = before + one.before, fixed + one.after, free + two.after
        moved += two.after < one.after
    saved = 100.0 * (fixed - free) / fixed if fixed else 0.0
    return (
        f"graphs {len(seeds)}  bytes copied: as written {before}, order kept {fixed}, readers moved {free}  "
        f"({saved:.2f} % less)  in {moved} graphs"
    )


def minimal(
    seed: int, is_like: Callable[[Verdict], bool], one_pass: Pass = reinplace, *, late: bool = False
) -> RandomGraph:
    """Return a small graph whose verdict is like that of the seed's graph."""

    def fails(choices: list[int]) -> bool:
        try:
            graph = replayed(choices)
            return is_like(judged(delayed(graph) if late else graph, one_pass))
        except ReinplaceError:
            return False

    logging.disable(logging.CRITICAL)  # FakeTensor logs each operator that a trial makes it refuse
    try:
        return replayed(shrunk(random_graph(seed).choices, fails))
    finally:
        logging.disable(logging.NOTSET)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the oracle from the command line; returns 1 when a graph is wrong."""
    parser = argparse.ArgumentParser(prog="python -m pytest_reinplace.passes.oracle", description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--no-optimum", action="store_true", help="check soundness only: faster")
    parser.add_argument(
        "--pass", dest="one_pass", metavar="MODULE:NAME", help="another pass over a GraphModule"
    )
    parser.add_argument("--show", type=int, default=3, help="print so many failing graphs, made small")
    parser.add_argument("--show-above", type=int, default=0, help="and so many that are not optimal")
    parser.add_argument(
        "--order",
        choices=("free", "keep"),
        default="free",
        help="may readers move (default: %(default)s)",
    )
    parser.add_argument("--late", action="store_true", help="delay all readers in the graphs")
    parser.add_argument("--moves", action="store_true", help="and print what moving readers saves")
    options = parser.parse_args(argv)
    start = time.perf_counter()
    own = reinplace if options.order == "free" else kept
    one_pass = _loaded(options.one_pass) if options.one_pass else own
    seeds = range(options.seed, options.seed + options.graphs)
    tally = tallied(seeds, one_pass, optimum=not options.no_optimum, late=options.late)
    print(f"{tally}  time {time.perf_counter() - start:.0f} s")
    if options.moves:
        print(compared(seeds, late=options.late))
    for seed, verdict in tally.wrong[: options.show]:
        problem = verdict.problem
        _show(seed, verdict.message, lambda v, p=problem: v.problem == p, one_pass, options.late)  # type: ignore[misc]
    for seed, verdict in tally.above[: options.show_above]:
        text = f"copies {verdict.after} B, {verdict.least} B are enough"
        _show(seed, text, lambda v: v.problem is None and v.after > v.least, one_pass, options.late)
    return 1 if tally.wrong else 0


def _loaded(name: str) -> Pass:
    module, _, attribute = name.partition(":")
    found: Pass = getattr(importlib.import_module(module), attribute)
    return found


def _show(
    seed: int, message: str, is_like: Callable[[Verdict], bool], one_pass: Pass, late: bool = False
) -> None:
    graph = minimal(seed, is_like, one_pass, late=late)
    graph = delayed(graph) if late else graph
    print(f"\n# seed {seed}: {message}\n{graph}\n# now: {judged(graph, one_pass)}")


if __name__ == "__main__":
    sys.exit(main())
