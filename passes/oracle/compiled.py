"""Random programs, compiled by Inductor with our passes and with its own, against eager mode.

``python -m pytest_reinplace.passes.oracle.compiled --programs 400 --beside``, with ``--device cuda`` on a
GPU. The oracle runs graphs node by node: what Inductor makes of a store, and in which order, only this shows.
"""

from __future__ import annotations

import argparse
import functools
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from ..fuzz.program import HardProgram, RandomProgram
from ..inductor.defects import DEFECTS
from ..inductor.stage import inductor_options
from .case import RAISES, Case
from .minimal import minimal
from .processes import Processes
from .setting import Setting

SIDES: dict[str, Callable[[], dict[str, Any]]] = {"exact": inductor_options, "inductor": dict}
ENDS = "ends"
_TOGETHER = 4  # programs that a process is given at a time
_TOLERANCE = 1e-9  # whole numbers in float64, which rounding changes only where they have grown large


class Fate(NamedTuple):
    """What became of one program.

    Args:
        seed: the program's.
        problems: for each side what is wrong, ``""`` where nothing is; empty for a program that is unfit.
        peaks: for each side the most bytes that a call held, of hard programs that it compiled right.
        functional: what is wrong with the functional graph of a hard program, which then is another program.
    """

    seed: int
    problems: dict[str, str]
    peaks: dict[str, int] = {}  # noqa: RUF012  (nobody writes it)
    functional: str = ""

    @property
    def is_above(self) -> bool:
        """Return whether ours held more than the other side where both are right."""
        first, *others = self.peaks.values() if len(self.peaks) > 1 else (0, 0)
        return first > min(others) and not self.functional


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
        return f"{RAISES} {type(error).__name__}: {' '.join(str(error).split())[:200]}"
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


def fates(
    seeds: Sequence[int],
    sides: Sequence[str],
    setting: Setting = _PLAIN,
    jobs: int = 0,
    seconds: float = math.inf,
) -> Iterator[Fate]:
    """Yield what becomes of the programs of seeds, compiled by so many processes, or by this one for 0.

    After so many seconds no further program is begun.
    """
    until = time.time() + seconds
    if jobs < 1:
        yield from _tried(seeds, sides, setting, until)
        return
    work = functools.partial(_alone, sides=sides, setting=setting, until=until)
    yield from Processes(work, functools.partial(_lost, sides=sides, setting=setting), jobs).results(
        seeds, _TOGETHER
    )


def _alone(seeds: Sequence[int], sides: Sequence[str], setting: Setting, until: float) -> list[Fate]:
    torch.set_num_threads(1)
    return list(_tried(seeds, sides, setting, until))


def _lost(seed: int, sides: Sequence[str], setting: Setting) -> Fate:
    """Return what became of a program that ended its process: which side did so is tried one by one."""
    ends = f"{ENDS} the process"
    if len(sides) == 1:
        return Fate(seed, {sides[0]: ends})
    problems: dict[str, str] = {}
    functional = ""
    for side in sides:
        (fate,) = fates([seed], [side], setting, jobs=1)
        problems |= fate.problems
        functional = functional or fate.functional
    return Fate(seed, problems, functional=functional)


def _tried(seeds: Iterable[int], sides: Sequence[str], setting: Setting, until: float) -> Iterator[Fate]:
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            if time.time() > until:
                break
            with setting.in_force():
                yield _fate(setting.program(seed), sides, setting)
    logging.disable(logging.NOTSET)


def _fate(program: RandomProgram | HardProgram, sides: Sequence[str], setting: Setting) -> Fate:
    if isinstance(program, RandomProgram):
        chosen = () if is_unfit(program, setting) else sides
        return Fate(program.seed, {side: problem(program, SIDES[side](), setting) for side in chosen})
    case = Case(program, setting)
    found = {side: case.judged(SIDES[side]()) for side in (() if case.is_unfit else sides)}
    problems = {side: judged.problem for side, judged in found.items()}
    peaks = {side: judged.peak for side, judged in found.items() if not judged.problem}
    return Fate(program.seed, problems, peaks, "" if case.is_unfit else case.functional)


def main(argv: Sequence[str] | None = None) -> int:
    """Compile random programs from the command line; returns 1 when our passes make one wrong."""
    options = _parser().parse_args(argv)
    sides = list(SIDES) if options.beside else [options.side]
    seeds = range(options.seed, options.seed + options.programs)
    hard = options.hard or options.training
    setting = Setting(
        options.device, options.dynamic, options.triton, hard, options.training, tuple(options.without)
    )
    start = time.perf_counter()
    found: list[Fate] = []
    for fate in fates(seeds, sides, setting, options.jobs, options.seconds):
        found.append(fate)
        if any(fate.problems.values()) or fate.is_above:
            print(_line(fate), flush=True)
    print(table(found, sides))
    seconds = time.perf_counter() - start
    pace = 60 * len(found) / seconds
    print(f"torch {torch.__version__}, {options.device}, {seconds:.0f} s, {pace:.0f} programs a minute")
    failed = [fate for fate in found if fate.problems.get(sides[0]) and not fate.functional]
    if failed:
        print(f"seeds that {sides[0]} fails:", *(fate.seed for fate in failed))
    above = [fate for fate in found if fate.is_above]
    if above:
        print(f"seeds for which {sides[0]} holds more:", *(fate.seed for fate in above))
    for fate in [*failed, *above][: options.show]:
        _print(fate, sides[0], setting)
    return int(any(not fate.problems[sides[0]].startswith(RAISES) for fate in failed))


def table(found: Sequence[Fate], sides: Sequence[str]) -> str:
    """Return one row for each side: how many programs it compiled right, wrong, and not at all.

    Beside another side, ``alone`` are those of the last two that the other compiled right.
    """
    fit = [fate for fate in found if fate.problems and not fate.functional]
    lines = [f"{'pass':<15}{'programs':>10}{'right':>8}{'wrong':>8}{'raises':>8}{'alone':>8}"]
    for side in sides:
        texts = [fate.problems[side] for fate in fit]
        raises = sum(text.startswith(RAISES) for text in texts)
        alone = sum(bool(fate.problems[side]) and sum(map(bool, fate.problems.values())) == 1 for fate in fit)
        counts = (len(fit), texts.count(""), len(texts) - texts.count("") - raises, raises, alone)
        lines.append(f"{side:<15}{counts[0]:>10}" + "".join(f"{n:>8}" for n in counts[1:]))
    unfit = sum(not fate.problems for fate in found)
    if unfit:
        lines.append(f"left out: {unfit} that eager mode or AOTAutograd refuses, or makes another program of")
    others = [fate for fate in found if fate.functional]
    if others:
        right = ", ".join(f"{side} right {sum(not f.problems[side] for f in others)}" for side in sides)
        lines.append(f"of {len(others)} the functional graph is another program: {right}")
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
    parser.add_argument("--hard", action="store_true", help="with views, storages, and calls that are hard")
    parser.add_argument("--training", action="store_true", help="hard programs with a backward")
    parser.add_argument(
        "--without", action="append", default=[], choices=list(DEFECTS), help="do nothing about this defect"
    )
    parser.add_argument("--side", choices=list(SIDES), default="exact", help="whose passes (%(default)s)")
    parser.add_argument(
        "--beside",
        action="store_true",
        help="both, on the same programs; what is made small stays right, or wrong, on the other side",
    )
    parser.add_argument("--show", type=int, default=3, help="print so many failing programs, made small")
    parser.add_argument(
        "--jobs", type=int, default=0, help="processes, any of which a program may end (0: this one)"
    )
    return parser


def _line(fate: Fate) -> str:
    texts = [f"{side}: {text or 'right'}" for side, text in fate.problems.items()]
    texts += [f"functional graph: {fate.functional}"] * bool(fate.functional)
    peaks = [f"{side} holds {peak} B" for side, peak in fate.peaks.items()] if fate.is_above else []
    return f"seed {fate.seed}: " + "; ".join([*texts, *peaks])


def _print(fate: Fate, side: str, setting: Setting) -> None:
    kind, others = fate.problems[side].partition(" ")[0], [s for s in fate.problems if s != side]

    def is_like(program: RandomProgram | HardProgram) -> bool:
        if isinstance(program, HardProgram):
            other = _fate(program, list(fate.problems), setting)
            texts = other.problems
            if not texts or (fate.is_above, bool(fate.functional)) != (
                other.is_above,
                bool(other.functional),
            ):
                return False
        else:
            texts = {s: problem(program, SIDES[s](), setting) for s in fate.problems}
        is_alike = texts[side].partition(" ")[0] == kind
        return is_alike and all(bool(texts[s]) == bool(fate.problems[s]) for s in others)

    logging.disable(logging.CRITICAL)
    with setting.in_force():
        program = setting.program(fate.seed)
        if not any(text.startswith(ENDS) for text in fate.problems.values()):
            program = minimal(program, is_like)
    logging.disable(logging.NOTSET)
    print(f"\n# {_line(fate)}")
    print(program.source)


if __name__ == "__main__":
    sys.exit(main())
