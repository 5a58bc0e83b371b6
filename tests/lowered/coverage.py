"""Static, workspace and measured peaks of all corpus entries: written to docs/memory-coverage.md.

``pytest -s tests/lowered/coverage.py`` compiles the entries on their CPU presets with our pass;
``COVERAGE_CORPUS`` are patterns for their names, with spaces between; without it the page is written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import functools
import os
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pytest_reinplace.call import call
from pytest_reinplace.call.state import State
from pytest_reinplace.capture import triton_cpu
from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.entry.entry import load
from pytest_reinplace.entry.run import built, called, configured, importable
from pytest_reinplace.lowered.calls import Calls
from pytest_reinplace.lowered.memory import Memory, memory

from ..house.checkout import ROOT

CORPUS = os.environ.get("COVERAGE_CORPUS", "*")
PAGE = ROOT / "docs" / "memory-coverage.md"
_HEAD = """
# Coverage of the memory below FX

Made by `pytest -s tests/lowered/coverage.py` with torch {version} on a CPU: all corpus entries that
compile just in time, on their CPU presets, with the pass `exact`. Figures are bytes.

*Static* is what the generated program holds at the peak, known without running a kernel, above what it is
called with. *Before* is what was held when that program began. *Workspace* is what the call at the peak was
seen to take for itself. Together they are the measured peak; *unexplained* is what is left. *Allocations*
counts the static ones, and *gaps* the lines after which another number of bytes was held than the static run
says.

Entries that launch Triton kernels run them in Triton's interpreter here. It holds the storages of their
arguments in a reference cycle: they are released when Python's collector runs, and not where the program
releases them. That is all that is unexplained.

{told}

| entry | programs | allocations | before | static | workspace | of | measured | unexplained | gaps |
|---|---|---|---|---|---|---|---|---|---|
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """What is known of an entry."""

    name: str
    memory: Memory | None = None
    problem: str = ""

    @property
    def problems(self) -> list[str]:
        """Why it, or one of its programs, is not known."""
        programs = self.memory.programs if self.memory else ()
        return [text for text in (self.problem, *(one.problem for one in programs)) if text]

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
        )
        return f"| {' | '.join(map(str, told))} |"


def rows() -> Iterator[Row]:
    """Measure the entries."""
    for path in sorted((ROOT / "corpus").glob("*.reinplace.yaml")):
        if not any(fnmatch.fnmatch(path.name.partition(".")[0], pattern) for pattern in CORPUS.split()):
            continue
        entry = load(path)
        preset = next((one for one in entry.presets.values() if one.device == "cpu"), None)
        if preset is None or entry.ahead_of_time:
            continue
        name = path.name.partition(".")[0]
        try:
            yield Row(name, _measured(path, entry, preset))
        except Exception as error:  # noqa: BLE001  (an entry that cannot run here)
            traceback.print_exc(limit=-3)
            yield Row(name, problem=f"{type(error).__name__}: {str(error).splitlines()[0][:100]}")


def _measured(path: Path, entry: Any, preset: Any) -> Memory:
    calls, capture = Calls(), Capture("exact", "inductor", ROOT)
    with contextlib.ExitStack() as stack:
        for context in (importable(path.parent, ROOT), triton_cpu.working()):
            stack.enter_context(context)
        program = stack.enter_context(built(entry, preset))
        for context in (configured(entry), capture, calls.lowering()):
            stack.enter_context(context)
        fn = torch.compile(program.fn, fullgraph=entry.fullgraph, dynamic=entry.dynamic or None)
        state = State(call.tensors(program.fn, program.args, program.kwargs))
        run = functools.partial(called, fn, program, entry)
        run()
        state.restore()
        return memory(calls, run, state.restore, "cpu")[1]


def page(found: Sequence[Row]) -> str:
    """Return the page."""
    known = [row for row in found if row.memory is not None]
    whole = [row for row in known if row.memory and not row.memory.unexplained and not row.problems]
    share = 100 * len(whole) / max(len(known), 1)
    told = f"{len(known)} of {len(found)} entries ran; explained to the byte: {len(whole)}, {share:.1f} %."
    head = _HEAD.format(version=torch.__version__.partition("+")[0], told=told).strip()
    problems = [f"* {row.name}: {text}" for row in found for text in row.problems]
    return "\n".join([head, *map(str, known), *(["", "Not known:", "", *problems] if problems else []), ""])


@pytest.mark.usefixtures("unoptimized")
def test_write_the_page() -> None:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows():
            print(row, *row.problems, flush=True)
            for one in row.memory.programs if row.memory else ():
                for gap in one.gaps[:5]:
                    print(f"    {gap}", flush=True)
            found.append(row)
    if CORPUS == "*":
        PAGE.write_text(page(found))
    assert found
    unexplained = [row.name for row in found if row.memory is not None and row.memory.unexplained]
    assert all(name.startswith("triton-") for name in unexplained), unexplained
