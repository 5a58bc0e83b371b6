"""Why programs hold more with our passes than with Inductor's, found by leaving out our measures one by one.

``python -m pytest_reinplace.passes.oracle.peaks 91 117 --jobs 2`` takes the seeds that
``pytest_reinplace.passes.oracle.compiled --hard --beside`` names. A measure is a reason if without it the
program holds no more than with Inductor's passes. Where none is, the clones of ours that the contract asks
for are named: of results, and of what is saved for the backward.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

import torch

from ..fuzz.program import HardProgram
from ..inductor.defects import DEFECTS
from ..inductor.schedule import check
from ..inductor.schedule._torch import AFTER_FUSION
from ..inductor.stage import inductor_options, observe
from ..reason import Reason as Cause
from ..report import Report
from .case import Case
from .processes import Processes
from .setting import Setting

_ORDER = "readers come before writes that were after them"
_CHECK = "the finished schedule was refused, and the program compiled anew"
_KEPT = "Inductor keeps an input that was written for the backward, which may write into it"
_FAULTY = "Inductor's own schedule is wrong, though the values of the two calls are right"
_SEVERAL = "no measure alone"
_LOST = "the process ended"
_NO_OPS = ("late-epilogue", "merged-outputs")  # the removal of no-ops is ours for both


class Reason(NamedTuple):
    """Why a program holds more.

    Args:
        seed: the program's.
        name: the measure without which it does not.
        is_needed: whether the program is wrong then.
    """

    seed: int
    name: str
    is_needed: bool = False


def reasons(seed: int, setting: Setting) -> list[Reason]:
    """Return the measures of ours for each of which alone a program holds more; none where it does not."""
    with setting.in_force():
        case = Case(HardProgram(seed, is_training=setting.training, is_dynamic=setting.dynamic), setting)
        theirs, reports = case.judged({}), list[Report]()
        with observe(lambda report, _: reports.append(report)):
            ours = case.judged(inductor_options())
    if theirs.problem or ours.problem or ours.peak <= theirs.peak:
        return []
    found = [Reason(seed, _FAULTY)] if _is_faulty(case, setting) else []
    if setting.training:
        with setting.in_force():
            if case.kept({}) > case.kept(inductor_options()):
                found.append(Reason(seed, _KEPT))
    for name, options, left_out in _measures(setting):
        with left_out:
            judged = case.judged(options)
        # The height of what raises is not known.
        if 0 < judged.peak <= theirs.peak:
            found.append(Reason(seed, name, bool(judged.problem)))
            if name == _CHECK:  # nor is the schedule checked where nothing is done about a defect
                break
    return found or [Reason(seed, name) for name in _by_contract(reports)] or [Reason(seed, _SEVERAL)]


def _is_faulty(case: Case, setting: Setting) -> bool:
    """Return whether our check finds fault with what Inductor schedules by itself."""
    faults: list[str] = []
    with setting.in_force(), check.watching_schedules(faults.append):
        case.judged({AFTER_FUSION: check.ScheduleCheck()})
    return bool(faults)


def _by_contract(reports: Sequence[Report]) -> list[str]:
    """Return what clones of ours are there for the contract, which Inductor may break."""
    outcomes = (outcome for report in reports for outcome in report.outcomes)
    causes = {one.reason for one in outcomes if one.reason in (Cause.ESCAPES, Cause.SAVED)}
    return sorted(f"a clone: {cause.sentence}" for cause in causes if cause is not None)


def _measures(
    setting: Setting,
) -> Iterator[tuple[str, dict[str, Any], contextlib.AbstractContextManager[Any]]]:
    """Yield each measure: its name, the options to compile with, and what leaves it out."""
    yield _ORDER, inductor_options(order="keep"), setting.in_force()
    yield _CHECK, inductor_options(), _unchecked(setting)
    for names in (_NO_OPS, *((name,) for name in DEFECTS if name not in _NO_OPS)):
        yield ", ".join(names), inductor_options(), setting._replace(without=names).in_force()


@contextlib.contextmanager
def _unchecked(setting: Setting) -> Iterator[None]:
    with setting.in_force(), mock.patch.object(check, "problem", return_value=""):
        yield


def _found(seeds: Sequence[int], setting: Setting) -> list[list[Reason]]:
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [reasons(seed, setting) for seed in seeds]


def _ended(seed: int) -> list[Reason]:
    return [Reason(seed, _LOST)]


def table(found: Sequence[Sequence[Reason]]) -> str:
    """Return one row for each measure: how many programs hold more for it, and how many are wrong without."""
    counts, needed = collections.Counter[str](), collections.Counter[str]()
    for reason in (one for several in found for one in several):
        counts[reason.name] += 1
        needed[reason.name] += reason.is_needed
    lines = [f"{'programs':>9}{'wrong without':>15}  reason"]
    lines += [f"{n:>9}{needed[name]:>15}  {name}" for name, n in counts.most_common()]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print why programs hold more; returns 1 where no measure says why."""
    parser = argparse.ArgumentParser(
        prog="python -m pytest_reinplace.passes.oracle.peaks", description=__doc__
    )
    parser.add_argument("seeds", type=int, nargs="+", help="hard programs, by their seeds")
    parser.add_argument("--device", default="cpu", help="where they run (default: %(default)s)")
    parser.add_argument("--dynamic", action="store_true", help="with symbols for sizes")
    parser.add_argument("--training", action="store_true", help="with a backward")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    options = parser.parse_args(argv)
    setting = Setting(options.device, options.dynamic, hard=True, training=options.training)
    work = functools.partial(_found, setting=setting)
    found = []
    for several in Processes(work, _ended, options.jobs).results(options.seeds, 1):
        found.append(several)
        for reason in several:
            without = ", wrong without it" if reason.is_needed else ""
            print(f"seed {reason.seed}: {reason.name}{without}", flush=True)
    print(table(found))
    return int(any(one.name in (_SEVERAL, _LOST) for several in found for one in several))


if __name__ == "__main__":
    sys.exit(main())
