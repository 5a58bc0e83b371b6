"""Static, workspace and measured peaks of all corpus entries: written to docs/memory-coverage.md.

``pytest -s tests/lowered/coverage.py`` compiles the entries on their CPU presets with our pass;
``COVERAGE_CORPUS`` are patterns for their names, with spaces between; without it the page is written.
With ``COVERAGE_DEVICE=cuda`` those for a GPU, to docs/memory-coverage-cuda.md. To the file ``COVERAGE_HELD``
is added what each entry holds that has a peak above eager's.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import fnmatch
import functools
import gc
import multiprocessing
import os
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pytest_reinplace.call import call, peak
from pytest_reinplace.call.state import State
from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.entry.entry import load
from pytest_reinplace.entry.run import called, ready
from pytest_reinplace.lowered import told as held
from pytest_reinplace.lowered.calls import Calls
from pytest_reinplace.lowered.memory import Memory, memory
from pytest_reinplace.passes import ReinplacePass

from ..house.checkout import ROOT
from . import above_eager

CORPUS = os.environ.get("COVERAGE_CORPUS", "*")
DEVICE = os.environ.get("COVERAGE_DEVICE", "cpu")
JOBS = int(os.environ.get("COVERAGE_JOBS", "1"))
_FEW = 3  # processes, for those that had no memory beside many others
_EAGER_CALLS = 3  # a profile counts what one call releases of the one before only where it saw both
HELD = os.environ.get("COVERAGE_HELD")
SECONDS = float(os.environ.get("COVERAGE_SECONDS", "36000"))
PAGE = ROOT / "docs" / ("memory-coverage.md" if DEVICE == "cpu" else f"memory-coverage-{DEVICE}.md")
_HEAD = """
# Coverage of the memory below FX

Made by `{command}` with torch {version} on {device}: all corpus entries that compile
just in time, on their presets for it, with the pass `exact`. Figures are bytes.

*Static* is what the generated program holds at the peak, known without running a kernel, above what it is
called with. *Before* is what was held when that program began. *Workspace* is what the call at the peak was
seen to take for itself. Together they are the measured peak; *unexplained* is what is left. *Allocations*
counts the static ones, and *gaps* the lines after which another number of bytes was held than the static run
says. *Bound* is the [lower bound](memory.md#the-lower-bound) of the peak, and *over* the measured peak by it.
*Eager* is the peak of the same call without a compiler.

{notes}

{told}

| entry | programs | allocations | before | static | workspace | of | measured | unexplained | gaps | bound \
| over | eager |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""
_ABOVE = """
## Above eager's peak

{below} of {known} entries hold at most what eager holds, {by_peak} with `inductor_options(policy="peak")`.
The others, what they hold then (*peak*), and why:

{causes}

| entry | measured | peak | eager | why |
|---|---|---|---|---|
"""


_ON_A_CPU = """
Entries that launch Triton kernels run them in Triton's interpreter here. It holds the storages of their
arguments in a reference cycle: they are released when Python's collector runs, and not where the program
releases them. That is all that is unexplained.
"""
_ON_A_GPU = """
Bytes are those that were requested of the allocator, which rounds them. A line is one step: what a call in it
takes beyond what it leaves is the workspace of the first operator in it.

All that is unexplained, and every gap, is one thing: in inference kernels of attention make no logarithms of
sums, or less of them than the fake results of their operators have. Less is held than the static run says
until the result is deleted.
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """What is known of an entry."""

    name: str
    memory: Memory | None = None
    problem: str = ""
    eager: int = 0
    by_peak: int = 0  # with policy="peak"; of those alone that hold more than eager

    @property
    def problems(self) -> list[str]:
        """Why it, or one of its programs, is not known."""
        programs = self.memory.programs if self.memory else ()
        return [text for text in (self.problem, *(one.problem for one in programs)) if text]

    @property
    def is_above_eager(self) -> bool:
        """Whether it holds more than eager does."""
        return self.memory is not None and self.memory.measured > self.eager

    def __str__(self) -> str:
        found = self.memory
        if found is None:
            return f"{self.name} did not run"
        most = found.at_peak
        before, static, workspace, operator = (found.outside, 0, 0, "outside of programs")
        if most is not None:
            at = most.workspace_at_peak
            workspace, operator = (at.nbytes, f"`{at.operator}`") if at else (0, "")
            before, static = most.before, most.peak - most.before - workspace
        taken = [one.taken for one in found.programs if one.taken is not None]
        told: Sequence[Any] = (
            self.name,
            len(found.programs),
            sum(len(one.allocations) for one in taken),
            before,
            static,
            workspace,
            operator,
            found.measured,
            found.unexplained,
            sum(len(one.gaps) for one in found.programs),
            found.bound,
            "" if found.over_bound is None else f"{found.over_bound:.2f}",
            self.eager,
        )
        return f"| {' | '.join(map(str, told))} |"


def rows() -> Iterator[Row]:
    """Measure the entries, in ``COVERAGE_JOBS`` processes, as far as ``COVERAGE_SECONDS`` allow."""
    paths = [path for path in sorted((ROOT / "corpus").glob("*.reinplace.yaml")) if _is_meant(path)]
    if JOBS == 1:
        yield from filter(None, map(row, paths))
        return
    start = time.monotonic()
    sys.path.append(str(ROOT))  # by which the processes find this module
    for jobs in (JOBS, _FEW, 1):
        crowded = list[Path]()  # for these there was no memory beside so many others
        for path, found in _together(paths, jobs, SECONDS - (time.monotonic() - start)):
            if found is not None and found.problem.startswith("OutOfMemoryError") and jobs > 1:
                crowded.append(path)
            elif found is not None:
                print(f"{time.monotonic() - start:.0f} s", end=" ")
                yield found
        paths = crowded


def _together(paths: Sequence[Path], jobs: int, seconds: float) -> Iterator[tuple[Path, Row | None]]:
    """Measure entries in so many processes; what is not done in time says so."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as processes:
        pending = {processes.submit(row, path): path for path in paths}
        try:
            for one in concurrent.futures.as_completed(pending, timeout=max(seconds, 0)):
                yield pending[one], one.result()
        except TimeoutError:
            for one, path in pending.items():
                if not one.done():
                    yield path, Row(_name(path), problem="there was no time for it")
            for process in processes._processes.values():
                process.kill()


def _name(path: Path) -> str:
    return path.name.partition(".")[0]


def _is_meant(path: Path) -> bool:
    return any(fnmatch.fnmatch(_name(path), pattern) for pattern in CORPUS.split())


def row(path: Path) -> Row | None:
    """Measure an entry; ``None`` where it is for another device, or compiled ahead of time."""
    entry = load(path)
    preset = entry.on(DEVICE)
    if preset is None or entry.ahead_of_time:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eager = _eager(entry, preset)
            found = Row(_name(path), _measured(entry, preset), eager=eager)
            if found.is_above_eager:
                by_peak = _measured(entry, preset, policy="peak").measured
                found = dataclasses.replace(found, by_peak=by_peak)
        if HELD and found.memory and found.is_above_eager:
            with Path(HELD).open("a") as file:  # in one piece: other processes write there, too
                file.write(
                    "\n".join([f"{found.name} (eager {found.eager})", *held.table(found.memory), "", ""])
                )
        return found
    except Exception as error:  # noqa: BLE001  (an entry that cannot run here)
        traceback.print_exc(limit=-3)
        return Row(_name(path), problem=f"{type(error).__name__}: {str(error).splitlines()[0][:100]}")
    finally:
        if DEVICE != "cpu":  # other processes want what this one keeps for its next entry
            torch.compiler.reset()
            gc.collect()
            torch.cuda.empty_cache()


def _eager(entry: Any, preset: Any) -> int:
    """Return the peak of an eager call, of a program of its own: what one makes at first is there later."""
    with ready(entry, preset, ROOT) as program:
        state = State(call.tensors(program.fn, program.args, program.kwargs))
        run = functools.partial(called, program.fn, program, entry)
        run()
        peaks = []
        for _ in range(_EAGER_CALLS):
            state.restore()
            peaks.append(peak.measured(run, DEVICE)[1])
        return min(peaks)


def _measured(entry: Any, preset: Any, policy: Any = "memory") -> Memory:
    calls, capture = Calls(), Capture("exact", "inductor", ROOT)
    with contextlib.ExitStack() as stack:
        program = stack.enter_context(ready(entry, preset, ROOT))
        chosen = torch._inductor.config.patch("post_grad_custom_post_pass", ReinplacePass(policy=policy))
        for context in (capture, chosen, calls.lowering()):
            stack.enter_context(context)
        torch.compiler.reset()
        fn = torch.compile(program.fn, fullgraph=entry.fullgraph, dynamic=entry.dynamic or None)
        state = State(call.tensors(program.fn, program.args, program.kwargs))
        run = functools.partial(called, fn, program, entry)
        run()
        state.restore()
        return memory(calls, run, state.restore, DEVICE)[1]


def page(found: Sequence[Row]) -> str:
    """Return the page."""
    known = [row for row in found if row.memory is not None]
    whole = [row for row in known if row.memory and not row.memory.unexplained and not row.problems]
    share = 100 * len(whole) / max(len(known), 1)
    told = f"{len(known)} of {len(found)} entries ran; explained to the byte: {len(whole)}, {share:.1f} %."
    is_cpu = DEVICE == "cpu"
    head = _HEAD.format(
        command=f"{'' if is_cpu else f'COVERAGE_DEVICE={DEVICE} '}pytest -s tests/lowered/coverage.py",
        version=torch.__version__.partition("+")[0],
        device="a CPU" if is_cpu else torch.cuda.get_device_name(),
        notes=(_ON_A_CPU if is_cpu else _ON_A_GPU).strip(),
        told=told,
    ).strip()
    lines = [head, *map(str, known), *_above(known)]
    problems = [f"* {row.name}: {text}" for row in found for text in row.problems]
    return "\n".join([*lines, *(["", "## Not known", "", *problems] if problems else []), ""])


def _above(known: Sequence[Row]) -> Iterator[str]:
    """Yield the part of the page on entries that hold more than eager does."""
    above = [row for row in known if row.is_above_eager]
    causes, reasons = above_eager.causes(DEVICE), above_eager.reasons(DEVICE)
    named = "\n".join(f"* *{name}*: {text}" for name, text in causes.items())
    below, by_peak = len(known) - len(above), sum(row.by_peak <= row.eager for row in above)
    yield ""
    yield _ABOVE.format(below=below, by_peak=below + by_peak, known=len(known), causes=named).strip()
    for row in above:
        measured = row.memory.measured if row.memory else 0
        yield f"| {row.name} | {measured} | {row.by_peak} | {row.eager} | {reasons.get(row.name, '')} |"


@pytest.mark.usefixtures("unoptimized")
def test_write_the_page() -> None:
    found = []
    for one in rows():
        print(one, *([f'with policy="peak" {one.by_peak}'] * one.is_above_eager), *one.problems, flush=True)
        for gap in (gap for part in (one.memory.programs if one.memory else ()) for gap in part.gaps[:5]):
            print(f"    {gap}", flush=True)
        found.append(one)
    if CORPUS == "*":
        PAGE.write_text(page(sorted(found, key=lambda one: one.name)))
    assert found
    taken = [(row.name, one.taken) for row in found if row.memory for one in row.memory.programs if one.taken]
    assert [name for name, one in taken if not 0 <= one.bound <= one.peak] == []
    above = {row.name for row in found if row.is_above_eager}
    reasons = above_eager.reasons(DEVICE).keys() & {row.name for row in found if row.memory}
    assert above == reasons, "each entry above eager has a reason for this device, and no other entry has"
    unexplained = [row.name for row in found if row.memory is not None and row.memory.unexplained]
    assert DEVICE != "cpu" or all(name.startswith("triton-") for name in unexplained), unexplained
