"""Random programs, compiled by Inductor with our passes and with its own, against eager mode.

``python -m pytest_reinplace.passes.oracle.compiled --programs 400 --beside``, with ``--device cuda`` on a
GPU. The oracle runs graphs node by node: what Inductor makes of a store, and in which order, only this shows.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import logging
import math
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from ..fuzz.program import RandomProgram
from ..inductor.stage import inductor_options

SIDES: dict[str, Callable[[], dict[str, Any]]] = {"exact": inductor_options, "inductor": dict}
_RAISES = "raises"
_TOGETHER = 4  # programs that a process is given at a time
_TOLERANCE = 1e-9  # whole numbers in float64, which rounding changes only where they have grown large


class Fate(NamedTuple):
    """What became of one program.

    Args:
        seed: the program's.
        problems: for each side what is wrong, ``""`` where nothing is; empty for a program that is unfit.
    """

    seed: int
    problems: dict[str, str]


class Setting(NamedTuple):
    """How programs are made, compiled and run.

    Args:
        device: where they run.
        dynamic: whether the sizes of their inputs are symbols, as far as a program lets them be.
        triton: whether some of their lines launch a Triton kernel, for which there must be a device.
    """

    device: str = "cpu"
    dynamic: bool = False
    triton: bool = False

    def program(self, seed: int) -> RandomProgram:
        """Return the program of a seed."""
        return RandomProgram(seed, has_triton=self.triton)


_PLAIN = Setting()


def problem(program: RandomProgram, options: dict[str, Any], setting: Setting = _PLAIN) -> str:
    """Return what is wrong with a program compiled by Inductor with options, ``""`` if nothing is.

    Raises:
        Exception: what the program raises in eager mode.
    """
    return _difference(program, setting, options=options)


def is_unfit(program: RandomProgram, setting: Setting = _PLAIN) -> bool:
    """Return whether the functional graph of a program is not the program: no pass can mend that.

    AOTAutograd refuses some, and names some strided parts of inputs with gaps wrongly (torch 2.11 to 2.13).
    """
    return bool(_difference(program, setting, backend="aot_eager_decomp_partition"))


def _difference(program: RandomProgram, setting: Setting, **how: Any) -> str:
    function = program.function()
    expected, given = program.inputs(setting.device), program.inputs(setting.device)
    results = function(*expected)
    torch.compiler.reset()
    try:
        actual = torch.compile(function, fullgraph=True, dynamic=setting.dynamic, **how)(*given)
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


def fates(
    seeds: Sequence[int],
    sides: Sequence[str],
    setting: Setting = _PLAIN,
    jobs: int = 1,
    seconds: float = math.inf,
) -> Iterator[Fate]:
    """Yield what becomes of the programs of seeds, compiled by several processes.

    After so many seconds no further program is begun.
    """
    until = time.time() + seconds
    if jobs < 2:
        yield from _tried(seeds, sides, setting, until)
        return
    shards = [seeds[i : i + _TOGETHER] for i in range(0, len(seeds), _TOGETHER)]
    context = multiprocessing.get_context("spawn")
    work = functools.partial(_alone, sides=sides, setting=setting, until=until)
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as processes:
        for found in processes.map(work, shards):
            yield from found


def _alone(seeds: Sequence[int], sides: Sequence[str], setting: Setting, until: float) -> list[Fate]:
    torch.set_num_threads(1)
    return list(_tried(seeds, sides, setting, until))


def _tried(seeds: Iterable[int], sides: Sequence[str], setting: Setting, until: float) -> Iterator[Fate]:
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            if time.time() > until:
                break
            program = setting.program(seed)
            chosen = () if is_unfit(program, setting) else sides
            yield Fate(seed, {side: problem(program, SIDES[side](), setting) for side in chosen})
    logging.disable(logging.NOTSET)


def main(argv: Sequence[str] | None = None) -> int:
    """Compile random programs from the command line; returns 1 when our passes make one wrong."""
    options = _parser().parse_args(argv)
    sides = list(SIDES) if options.beside else [options.side]
    seeds = range(options.seed, options.seed + options.programs)
    setting = Setting(options.device, options.dynamic, options.triton)
    start = time.perf_counter()
    found: list[Fate] = []
    for fate in fates(seeds, sides, setting, options.jobs, options.seconds):
        found.append(fate)
        if any(fate.problems.values()):
            print(_line(fate), flush=True)
    print(table(found, sides))
    print(f"torch {torch.__version__}, {options.device}, {time.perf_counter() - start:.0f} s")
    failed = [fate for fate in found if fate.problems.get(sides[0])]
    if failed:
        print(f"seeds that {sides[0]} fails:", *(fate.seed for fate in failed))
    for fate in failed[: options.show]:
        _print(fate, sides[0], setting)
    return int(any(not fate.problems[sides[0]].startswith(_RAISES) for fate in failed))


def table(found: Sequence[Fate], sides: Sequence[str]) -> str:
    """Return one row for each side: how many programs it compiled right, wrong, and not at all.

    Beside another side, ``alone`` are those of the last two that the other compiled right.
    """
    fit = [fate for fate in found if fate.problems]
    lines = [f"{'pass':<15}{'programs':>10}{'right':>8}{'wrong':>8}{'raises':>8}{'alone':>8}"]
    for side in sides:
        texts = [fate.problems[side] for fate in fit]
        raises = sum(text.startswith(_RAISES) for text in texts)
        alone = sum(bool(fate.problems[side]) and sum(map(bool, fate.problems.values())) == 1 for fate in fit)
        counts = (len(fit), texts.count(""), len(texts) - texts.count("") - raises, raises, alone)
        lines.append(f"{side:<15}{counts[0]:>10}" + "".join(f"{n:>8}" for n in counts[1:]))
    if len(fit) < len(found):
        lines.append(
            f"left out: {len(found) - len(fit)} that AOTAutograd refuses or makes another program of"
        )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pytest_reinplace.passes.oracle.compiled", description=__doc__
    )
    parser.add_argument("--programs", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no more after so long")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="where they run (default: %(default)s)")
    parser.add_argument("--dynamic", action="store_true", help="with symbols for sizes")
    parser.add_argument("--triton", action="store_true", help="with a Triton kernel; needs a GPU")
    parser.add_argument("--side", choices=list(SIDES), default="exact", help="whose passes (%(default)s)")
    parser.add_argument("--beside", action="store_true", help="both, on the same programs")
    parser.add_argument("--show", type=int, default=3, help="print so many failing programs, made small")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    return parser


def _line(fate: Fate) -> str:
    return f"seed {fate.seed}: " + "; ".join(f"{s}: {text or 'right'}" for s, text in fate.problems.items())


def _print(fate: Fate, side: str, setting: Setting) -> None:
    kind, others = fate.problems[side].split()[0], [s for s in fate.problems if s != side]

    def is_like(program: RandomProgram) -> bool:
        if problem(program, SIDES[side](), setting).partition(" ")[0] != kind:
            return False
        return all(bool(problem(program, SIDES[s](), setting)) == bool(fate.problems[s]) for s in others)

    logging.disable(logging.CRITICAL)
    program = minimal(setting.program(fate.seed), is_like)
    logging.disable(logging.NOTSET)
    print(f"\n# {_line(fate)}")
    print(program.source)


if __name__ == "__main__":
    sys.exit(main())
