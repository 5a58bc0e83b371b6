"""Random programs, compiled by Inductor with our passes and with its own, against eager mode.

``python -m pytest_reinplace.passes.compiled --programs 400 --beside``, with ``--device cuda`` on a GPU. The
oracle runs graphs node by node: what Inductor makes of a store, and in which order, only this shows.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import logging
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from .inductor import inductor_options
from .random_program import RandomProgram

SIDES: dict[str, Callable[[], dict[str, Any]]] = {"exact": inductor_options, "inductor": dict}

_RAISES = "raises"
_TOGETHER = 10  # programs that a process is given at a time
_TOLERANCE = 1e-9  # whole numbers in float64, which rounding changes only where they have grown large


class Fate(NamedTuple):
    """What became of one program.

    Args:
        seed: the program's.
        problems: for each side what is wrong, ``""`` where nothing is; empty for a program that is unfit.
    """

    seed: int
    problems: dict[str, str]


def problem(program: RandomProgram, options: dict[str, Any], device: str = "cpu") -> str:
    """Return what is wrong with a program compiled by Inductor with options, ``""`` if nothing is.

    Raises:
        Exception: what the program raises in eager mode.
    """
    return _difference(program, functools.partial(torch.compile, fullgraph=True, options=options), device)


def is_unfit(program: RandomProgram, device: str = "cpu") -> bool:
    """Return whether the functional graph of a program is not the program: no pass can mend that.

    AOTAutograd refuses some, and names some strided parts of inputs with gaps wrongly (torch 2.11 to 2.13).
    """
    compiled = functools.partial(torch.compile, fullgraph=True, backend="aot_eager_decomp_partition")
    return bool(_difference(program, compiled, device))


def _difference(program: RandomProgram, compiler: Callable[..., Any], device: str) -> str:
    function, expected, given = program.function(), program.inputs(device), program.inputs(device)
    results = function(*expected)
    torch.compiler.reset()
    try:
        actual = compiler(function)(*given)
    except Exception as error:  # noqa: BLE001  (whatever it raises is a finding)
        return f"{_RAISES} {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    for i, (one, other) in enumerate(zip((*results, *expected), (*actual, *given), strict=True)):
        if not _is_same(one, other):
            return f"result {i} differs" if i < len(results) else f"input {i - len(results)} differs"
    return ""


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    return torch.allclose(one, other, rtol=_TOLERANCE, equal_nan=True)


def minimal(program: RandomProgram, is_like: Callable[[RandomProgram], bool]) -> RandomProgram:
    """Return a program of as few lines as it takes to be like that one."""
    at = 0
    while at < len(program.lines):
        other = program.without(at)
        try:
            is_enough = is_like(other)
        except Exception:  # noqa: BLE001  (eager mode refuses it: what it uses is gone)
            is_enough = False
        if is_enough:
            program, at = other, 0
        else:
            at += 1
    return program


def fates(seeds: Sequence[int], sides: Sequence[str], device: str, jobs: int = 1) -> Iterator[Fate]:
    """Yield what becomes of the programs of seeds, compiled by several processes."""
    if jobs < 2:
        yield from _tried(seeds, sides=sides, device=device)
        return
    shards = [seeds[i : i + _TOGETHER] for i in range(0, len(seeds), _TOGETHER)]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as processes:
        for found in processes.map(functools.partial(_alone, sides=sides, device=device), shards):
            yield from found


def _alone(seeds: Sequence[int], sides: Sequence[str], device: str) -> list[Fate]:
    torch.set_num_threads(1)
    return list(_tried(seeds, sides, device))


def _tried(seeds: Iterable[int], sides: Sequence[str], device: str) -> Iterator[Fate]:
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            program = RandomProgram(seed)
            chosen = () if is_unfit(program, device) else sides
            yield Fate(seed, {side: problem(program, SIDES[side](), device) for side in chosen})
    logging.disable(logging.NOTSET)


def main(argv: Sequence[str] | None = None) -> int:
    """Compile random programs from the command line; returns 1 when our passes make one wrong."""
    options = _parser().parse_args(argv)
    sides = list(SIDES) if options.beside else [options.side]
    seeds = range(options.seed, options.seed + options.programs)
    start = time.perf_counter()
    found = list(fates(seeds, sides, options.device, options.jobs))
    print(table(found, sides))
    print(f"torch {torch.__version__}, {options.device}, {time.perf_counter() - start:.0f} s")
    failed = [fate for fate in found if fate.problems.get(sides[0])]
    if failed:
        print(f"seeds that {sides[0]} fails:", *(fate.seed for fate in failed))
    for fate in failed[: options.show]:
        _print(fate, sides[0], options.device)
    return int(any(not fate.problems[sides[0]].startswith(_RAISES) for fate in failed))


def table(found: Sequence[Fate], sides: Sequence[str]) -> str:
    """Return one row for each side: how many programs it compiled right, wrong, and not at all."""
    fit = [fate for fate in found if fate.problems]
    lines = [f"{'pass':<15}{'programs':>10}{'right':>8}{'wrong':>8}{'raises':>8}"]
    for side in sides:
        texts = [fate.problems[side] for fate in fit]
        raises = sum(text.startswith(_RAISES) for text in texts)
        counts = (len(fit), texts.count(""), len(texts) - texts.count("") - raises, raises)
        lines.append(f"{side:<15}{counts[0]:>10}" + "".join(f"{n:>8}" for n in counts[1:]))
    if len(fit) < len(found):
        lines.append(
            f"left out: {len(found) - len(fit)} that AOTAutograd refuses or makes another program of"
        )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pytest_reinplace.passes.compiled", description=__doc__)
    parser.add_argument("--programs", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="where they run (default: %(default)s)")
    parser.add_argument("--side", choices=list(SIDES), default="exact", help="whose passes (%(default)s)")
    parser.add_argument("--beside", action="store_true", help="both, on the same programs")
    parser.add_argument("--show", type=int, default=3, help="print so many failing programs, made small")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    return parser


def _print(fate: Fate, side: str, device: str) -> None:
    kind, others = fate.problems[side].split()[0], [s for s in fate.problems if s != side]

    def is_like(program: RandomProgram) -> bool:
        if problem(program, SIDES[side](), device).partition(" ")[0] != kind:
            return False
        return all(bool(problem(program, SIDES[s](), device)) == bool(fate.problems[s]) for s in others)

    logging.disable(logging.CRITICAL)
    program = minimal(RandomProgram(fate.seed), is_like)
    logging.disable(logging.NOTSET)
    print(
        f"\n# seed {fate.seed}: " + "; ".join(f"{s}: {text or 'right'}" for s, text in fate.problems.items())
    )
    print(program.source)


if __name__ == "__main__":
    sys.exit(main())
