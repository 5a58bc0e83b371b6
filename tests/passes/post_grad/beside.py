"""Whether our post-grad rules make anything worse: corpus entries compiled with them and without, on the CPU.

``pytest -s tests/passes/post_grad/beside.py``; ``BESIDE_CORPUS`` holds patterns for the names of entries,
with commas, ``BESIDE_SECONDS`` says when no further entry is begun. Each is compiled by Inductor as it is,
with our reinplacing alone, and with our rules: no more clones, bytes of clones, kernels or bytes at the peak
than without the rules, and as many matches of patterns that choose kernels as in stock.
"""

from __future__ import annotations

import functools
import os
import re
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from pytest_reinplace.call import call, peak
from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.entry.entry import Entry, Preset, load
from pytest_reinplace.entry.run import called, plainly, ready
from pytest_reinplace.lowered.called import Call
from pytest_reinplace.lowered.calls import Calls

from ...house.checkout import ROOT

CORPUS = os.environ.get("BESIDE_CORPUS", "*").split(",")
SECONDS = float(os.environ.get("BESIDE_SECONDS", "36000"))
STOCK, WITHOUT, WITH = "inductor", "exact", "post_grad"
COSTS = "clones", "clone_bytes", "kernels", "peak_bytes"
# Lines of a program that launch a kernel or call a library. One kernel for a CPU may have several loops.
LAUNCH = re.compile(r"\s*(\w+ = )?(cpp_\w+\(|\w+\.run\(|extern_kernels\.|torch\.ops\.|aten\.)")
CHOOSING = "fuse_attention", "addmm", "mkldnn", "qlinear", "qconv", "mm_plus_mm", "softmax"
Figures = Mapping[str, Any]


def figures(entry: Entry, preset: Preset, name: str) -> Figures:
    """Return what an entry costs when it is compiled with a pass."""
    torch.compiler.reset()
    counters.clear()
    with ready(entry, preset, ROOT) as program:
        capture, calls = Capture(name, "inductor", ROOT), Calls()
        with capture, calls.lowering():  # outside of it, a program that is in parts is compiled by stock
            fast = call.compiled(program.fn, dynamic=entry.dynamic or None)
            called(fast, program, entry)
            matched = {k: n for k, n in counters["inductor"].items() if any(part in k for part in CHOOSING)}
            run: Callable[[], Any] = functools.partial(plainly, fast, program, entry)
            run()  # the state of an optimizer is there from the second call on: that compiles once more
            lowered = calls.lowered
            with calls.noting():
                run()
            peak_bytes = peak.measured(run)[1]
            assert calls.lowered == lowered, "compiled once more while it was measured"
    cloned = [one for one in capture.report.outcomes if not one.reinplaced]
    return {
        "clones": len(cloned),
        "clone_bytes": sum(one.nbytes or 0 for one in cloned),
        "kernels": sum(map(_launches, calls.found)),
        "peak_bytes": peak_bytes,
        "matched": matched,
    }


def _launches(call: Call) -> int:
    lines = call.program.text.splitlines()
    return sum(LAUNCH.match(lines[number - 1]) is not None for number in call.lines)


def worse(found: Mapping[str, Figures]) -> list[str]:
    """Return what our rules make worse, in words."""
    before, after = found[WITHOUT], found[WITH]
    told = [f"{what} {before[what]} -> {after[what]}" for what in COSTS if after[what] > before[what]]
    stock = found[STOCK]["matched"]
    return told + ([f"matches {stock} -> {after['matched']}"] if after["matched"] != stock else [])


def _of_entry(path: Path) -> dict[str, Figures] | None:
    entry = load(path)
    preset = entry.on("cpu")
    if preset is None or {WITHOUT, WITH, STOCK} & set(preset.unrunnable):
        return None
    return {name: figures(entry, preset, name) for name in (STOCK, WITHOUT, WITH)}


@pytest.mark.usefixtures("unoptimized")
def test_nothing_is_worse_with_our_rules() -> None:
    start, bad, total = time.monotonic(), dict[str, list[str]](), 0
    found_in = (ROOT / "corpus").glob
    paths = [path for pattern in CORPUS for path in sorted(found_in(f"{pattern}.reinplace.yaml"))]
    for path in dict.fromkeys(paths):
        if time.monotonic() - start > SECONDS:
            print(f"not begun: {path.name} and those behind it")
            break
        name = path.name.partition(".")[0]
        try:
            found = _of_entry(path)
        except Exception:  # noqa: BLE001  (an entry that cannot run here)
            print(f"{name}: {traceback.format_exc(limit=1)}", flush=True)
            continue
        if found is None:
            continue
        total += 1
        bad |= {name: told} if (told := worse(found)) else {}
        line = ", ".join(f"{what} {'/'.join(str(found[one][what]) for one in found)}" for what in COSTS)
        print(f"{name}: {line}; {found[WITH]['matched'] or ''} {'WORSE' if told else ''}", flush=True)
    print(f"{total} entries, {len(bad)} worse: {bad}")
    assert not bad
