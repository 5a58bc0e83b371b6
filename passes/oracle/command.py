"""The oracle: a pass against random graphs, its rewrites run, and its bytes held against the optimum.

``python -m pytest_reinplace.passes.oracle --graphs 20000 --seed 0``, and with ``--beside inductor`` the
same graphs through Inductor's own pass too.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import logging
import multiprocessing
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import ReinplaceError
from ..fuzz.graph import RandomGraph
from ..fuzz.late_order import delayed
from ..reinplacing.run import reinplace
from ..strategies import random_graph, replayed
from ..verify import foreign
from ..verify.shrink import shrunk
from .beside import Beside
from .tally import Tally, compared, kept, tallied
from .verdict import Pass, Verdict, judged

__all__ = ["Pass", "Tally", "Verdict", "judged", "minimal", "tallied"]
_SHARD = 500  # graphs that a process judges at a time
Result = TypeVar("Result", Tally, Beside)


def minimal(
    seed: int,
    is_like: Callable[[Verdict], bool],
    one_pass: Pass = reinplace,
    *,
    late: bool = False,
    wild: bool = False,
) -> RandomGraph:
    """Return a small graph whose verdict is like that of the seed's graph."""

    def fails(choices: list[int]) -> bool:
        try:
            graph = replayed(choices, wild=wild)
            return is_like(judged(delayed(graph) if late else graph, one_pass))
        except ReinplaceError:
            return False

    logging.disable(logging.CRITICAL)  # FakeTensor logs each operator that a trial makes it refuse
    try:
        return replayed(shrunk(random_graph(seed, wild=wild).choices, fails), wild=wild)
    finally:
        logging.disable(logging.NOTSET)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the oracle from the command line; returns 1 when a graph is wrong."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        _chosen(options)
    except ReinplaceError as error:
        parser.error(str(error))
    seeds = range(options.seed, options.seed + options.graphs)
    start = time.perf_counter()
    logging.disable(logging.CRITICAL)  # Inductor logs each conflict of its shapes
    if options.beside:
        beside = _sharded(_beside, seeds, options)
        found = next(iter(beside.tallies.values()))
        print(f"{beside}\ntime {time.perf_counter() - start:.0f} s")
    else:
        found = _sharded(_tally, seeds, options)
        print(f"{found}  time {time.perf_counter() - start:.0f} s")
        if options.moves:
            print(compared(seeds, late=options.late, wild=options.wild))
    logging.disable(logging.NOTSET)
    _show(found, options)
    return 1 if found.wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pytest_reinplace.passes.oracle", description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--no-optimum", action="store_true", help="check soundness only: faster")
    parser.add_argument(
        "--pass",
        dest="one_pass",
        metavar="NAME",
        help="another pass: inductor, inductor-stack or MODULE:NAME, over a GraphModule or a Graph",
    )
    parser.add_argument("--beside", metavar="NAME", help="the pass and this one, on the same graphs")
    parser.add_argument("--show", type=int, default=3, help="print so many failing graphs, made small")
    parser.add_argument("--show-above", type=int, default=0, help="and so many that are not optimal")
    orders = ("free", "keep")
    parser.add_argument("--order", choices=orders, default="free", help="may readers move (%(default)s)")
    parser.add_argument("--late", action="store_true", help="delay all readers in the graphs")
    parser.add_argument("--wild", action="store_true", help="rare things, too: hidden aliases, no elements")
    parser.add_argument("--moves", action="store_true", help="and print what moving readers saves")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    return parser


def _sharded(
    work: Callable[[Sequence[int], argparse.Namespace], Result],
    seeds: Sequence[int],
    options: argparse.Namespace,
) -> Result:
    """Do the work in shards, by as many processes as wanted; the results are added in order."""
    if options.jobs < 2:
        return work(seeds, options)
    shards = [seeds[i : i + _SHARD] for i in range(0, len(seeds), _SHARD)]
    total = work((), options)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.jobs, mp_context=context) as processes:
        for result in processes.map(work, shards, [options] * len(shards)):
            total.extend(result)
    return total


def _tally(seeds: Sequence[int], options: argparse.Namespace) -> Tally:
    how = {"late": options.late, "wild": options.wild, "optimum": not options.no_optimum}
    return tallied(seeds, _chosen(options), **how)


def _beside(seeds: Sequence[int], options: argparse.Namespace) -> Beside:
    passes = {options.one_pass or "exact": _chosen(options), options.beside: foreign.found(options.beside)}
    beside = Beside(passes, wild=options.wild)
    for seed in seeds:
        beside.add(seed, optimum=not options.no_optimum)
    return beside


def _chosen(options: argparse.Namespace) -> Pass:
    if options.one_pass:
        return foreign.found(options.one_pass)
    return reinplace if options.order == "free" else kept


def _show(tally: Tally, options: argparse.Namespace) -> None:
    """Print failing graphs, and such that are not optimal, made small."""
    if tally.wrong:
        print("wrong seeds:", *(seed for seed, _ in tally.wrong))
    for seed, verdict in tally.wrong[: options.show]:
        problem = verdict.problem
        _print(seed, verdict.message, lambda v, p=problem: v.problem == p, options)  # type: ignore[misc]
    for seed, verdict in tally.above[: options.show_above]:
        text = f"copies {verdict.after} B, {verdict.least} B are enough"
        _print(seed, text, lambda v: v.problem is None and v.after > v.least, options)


def _print(seed: int, message: str, is_like: Callable[[Verdict], bool], options: argparse.Namespace) -> None:
    one_pass = _chosen(options)
    graph = minimal(seed, is_like, one_pass, late=options.late, wild=options.wild)
    graph = delayed(graph) if options.late else graph
    text = graph.program(options.one_pass)
    print(f"\n# seed {seed}: {message}\n{text}\n# now: {judged(graph, one_pass)}")
