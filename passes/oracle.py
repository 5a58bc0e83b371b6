"""The oracle: a pass against random graphs, its rewrites run, and its bytes held against the optimum.

``python -m pytest_reinplace.passes.oracle --graphs 20000 --seed 0``, and with ``--beside inductor`` the
same graphs through Inductor's own pass too.
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

from . import baseline
from .draws import shrunk
from .equivalence import EquivalenceError, assert_equivalent
from .errors import ReinplaceError
from .optimum import copied_bytes, minimum_clone_bytes
from .random_graph import RandomGraph
from .reason import Reason
from .reinplace import analyze, reinplace
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
        least: bytes that the cheapest legal rewrite copies; at most ``after``.
    """

    problem: str | None = None
    message: str = ""
    before: int = 0
    after: int = 0
    least: int = 0


@dataclasses.dataclass(slots=True)
class Tally:
    """The verdicts of many graphs."""

    graphs: int = 0
    wrong: list[tuple[int, Verdict]] = dataclasses.field(default_factory=list)
    above: list[tuple[int, Verdict]] = dataclasses.field(default_factory=list)
    removable: int = 0
    removed: int = 0

    def add(self, seed: int, verdict: Verdict) -> None:
        """Count one graph."""
        self.graphs += 1
        if verdict.problem is not None:
            self.wrong.append((seed, verdict))
            return
        self.removable += verdict.before - verdict.least
        self.removed += verdict.before - verdict.after
        if verdict.after > verdict.least:
            self.above.append((seed, verdict))

    @property
    def aliased(self) -> int:
        """How many of the wrong graphs have right values and share storage differently."""
        return sum(v.problem == "alias" for _, v in self.wrong)

    @property
    def percentage(self) -> float:
        """Bytes removed, in per cent of those that any legal rewrite can remove."""
        return 100.0 * self.removed / self.removable if self.removable else 100.0

    def __str__(self) -> str:
        return (
            f"graphs {self.graphs}  wrong {len(self.wrong) - self.aliased}  alias-wrong {self.aliased}  "
            f"bytes removable {self.removable}  removed {self.removed}  ({self.percentage:.2f} %)  "
            f"not optimal {len(self.above)}"
        )


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
        one_pass(rewritten)
        rewritten.graph.lint()
        assert_equivalent(graph.gm, rewritten, graph.inputs)
    except EquivalenceError as error:
        return Verdict(error.kind, str(error))
    except Exception as error:  # noqa: BLE001  (whatever a pass raises is a finding)
        return Verdict("error", f"{type(error).__name__}: {error}")
    before, after = copied_bytes(graph.gm), copied_bytes(rewritten, graph.gm)
    if least is None:
        least = minimum_clone_bytes(graph.gm, graph.inputs, below=after) if optimum else after
    return Verdict(None, "", before, after, min(least, after))


def tallied(seeds: Iterator[int] | Sequence[int], one_pass: Pass = reinplace, **options: Any) -> Tally:
    """Judge the graphs of many seeds."""
    tally = Tally()
    for seed in seeds:
        tally.add(seed, judged(random_graph(seed), one_pass, **options))
    return tally


def minimal(seed: int, is_like: Callable[[Verdict], bool], one_pass: Pass = reinplace) -> RandomGraph:
    """Return a small graph whose verdict is like that of the seed's graph."""

    def fails(choices: list[int]) -> bool:
        try:
            return is_like(judged(replayed(choices), one_pass))
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
        "--pass",
        dest="one_pass",
        metavar="NAME",
        help="another pass: inductor, inductor-stack or MODULE:NAME",
    )
    parser.add_argument("--beside", metavar="NAME", help="the pass and this one, on the same graphs")
    parser.add_argument("--show", type=int, default=3, help="print so many failing graphs, made small")
    parser.add_argument("--show-above", type=int, default=0, help="and so many that are not optimal")
    options = parser.parse_args(argv)
    start = time.perf_counter()
    one_pass = _loaded(options.one_pass) if options.one_pass else reinplace
    seeds = range(options.seed, options.seed + options.graphs)
    if options.beside:
        passes = {options.one_pass or "exact": one_pass, options.beside: _loaded(options.beside)}
        return _print_beside(seeds, passes, optimum=not options.no_optimum)
    tally = tallied(seeds, one_pass, optimum=not options.no_optimum)
    print(f"{tally}  time {time.perf_counter() - start:.0f} s")
    for seed, verdict in tally.wrong[: options.show]:
        problem = verdict.problem
        _show(seed, verdict.message, lambda v, p=problem: v.problem == p, one_pass)  # type: ignore[misc]
    for seed, verdict in tally.above[: options.show_above]:
        text = f"copies {verdict.after} B, {verdict.least} B are enough"
        _show(seed, text, lambda v: v.problem is None and v.after > v.least, one_pass)
    return 1 if tally.wrong else 0


_COLUMNS = "{:<15}{:>8}{:>8}{:>7}{:>7}{:>8}{:>11}{:>14}{:>12}{:>9}{:>8}"


class Beside:
    """Several passes on the same graphs.

    Args:
        passes: the passes by name; the first finds the optimum that the others are held against.
    """

    def __init__(self, passes: dict[str, Pass]) -> None:
        self.passes = passes
        self.tallies = {name: Tally() for name in passes}
        self.common = {name: Tally() for name in passes}
        self.same_node = dict.fromkeys(passes, 0)

    def add(self, seed: int, *, optimum: bool = True) -> None:
        """Judge all passes on the graph of a seed."""
        graph = random_graph(seed)
        least: int | None = None
        verdicts: dict[str, Verdict] = {}
        for name, one_pass in self.passes.items():
            verdict = judged(graph, one_pass, optimum=optimum, least=least)
            verdicts[name] = verdict
            self.tallies[name].add(seed, verdict)
            if verdict.problem is None and optimum:
                least = verdict.least
            elif verdict.problem is not None:
                reasons = {outcome.reason for outcome in analyze(graph.gm).outcomes}
                self.same_node[name] += Reason.SAME_NODE in reasons
        if all(verdict.problem is None for verdict in verdicts.values()):
            best = min(verdict.least for verdict in verdicts.values())
            for name, verdict in verdicts.items():
                self.common[name].add(seed, dataclasses.replace(verdict, least=best))

    def __str__(self) -> str:
        """Return one row per pass; bytes are of the graphs that all passes got right."""
        names = ("pass", "graphs", "values", "alias", "raises", "wrong", "same-node")
        lines = [_COLUMNS.format(*names, "removable B", "removed B", "removed", "above")]
        for name, tally in self.tallies.items():
            raises = sum(v.problem == "error" for _, v in tally.wrong)
            values = len(tally.wrong) - tally.aliased - raises
            counts = (values, tally.aliased, raises, len(tally.wrong), self.same_node[name])
            common = self.common[name]
            bytes_ = (common.removable, common.removed, f"{common.percentage:.2f} %", len(common.above))
            lines.append(_COLUMNS.format(name, tally.graphs, *counts, *bytes_))
        count = next(iter(self.common.values())).graphs
        lines.append(f"bytes, and graphs above the optimum: of the {count} graphs that all got right")
        lines.append("same-node: of the wrong graphs, those where a call reads, elsewhere, what it writes")
        return "\n".join(lines)


def _print_beside(seeds: Sequence[int], passes: dict[str, Pass], optimum: bool) -> int:
    """Judge all passes on the same graphs; returns 1 when the first one is wrong."""
    start = time.perf_counter()
    beside = Beside(passes)
    logging.disable(logging.CRITICAL)  # Inductor logs each conflict of its shapes
    for seed in seeds:
        beside.add(seed, optimum=optimum)
    logging.disable(logging.NOTSET)
    print(f"{beside}\ntime {time.perf_counter() - start:.0f} s")
    return 1 if next(iter(beside.tallies.values())).wrong else 0


def _loaded(name: str) -> Pass:
    if name in baseline.passes():
        return baseline.passes()[name]
    module, _, attribute = name.partition(":")
    found: Pass = getattr(importlib.import_module(module), attribute)
    return found


def _show(seed: int, message: str, is_like: Callable[[Verdict], bool], one_pass: Pass) -> None:
    graph = minimal(seed, is_like, one_pass)
    print(f"\n# seed {seed}: {message}\n{graph}\n# now: {judged(graph, one_pass)}")


if __name__ == "__main__":
    sys.exit(main())
