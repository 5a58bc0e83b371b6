"""What it costs to see, while a program is compiled, which copies lowering adds and where buffers come from.

``python -m benchmarks.capture_cost`` compiles entries of the corpus in pairs, with the capture and
without it: both cold, in random order, in CPU seconds of this process, which leave out the C++ compiler.
Two compiles differ by more than the capture takes. So the time that is spent in the capture itself is
told as well, and held to the limits. Exit status: the number of entries above one.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from pytest_reinplace.copies import _torch as notes
from pytest_reinplace.copies.lowering import Lowering
from pytest_reinplace.entry.entry import Entry, load
from pytest_reinplace.entry.run import called, ready
from pytest_reinplace.lowered import _torch as origins
from pytest_reinplace.lowered.calls import Calls

from . import _torch

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
ENTRIES = ("llama-decode", "batch-norm-statistics", "muon-step", "mixtral-training")
# All that runs for the capture while a graph is lowered; the wrappers around it only call it.
_SEEN_TO: tuple[tuple[Any, str], ...] = (
    (notes, "_note"),
    (Lowering, "_done"),
    (origins, "_nodes"),
    (Calls, "_lowered"),
)


def main() -> int:
    """Print a line for each entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("entries", nargs="*", default=ENTRIES)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--most", type=float, default=20.0, help="milliseconds of the capture")
    parser.add_argument("--share", type=float, default=0.02, help="of the CPU seconds of a compile")
    given = parser.parse_args()
    above = 0
    for name in given.entries:
        entry = load(CORPUS / f"{name}.reinplace.yaml")
        _seconds(entry, captured=True)  # loads what either side loads once
        found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        for captured in [side for _ in range(given.pairs) for side in random.sample([True, False], 2)]:
            found[captured].append(_seconds(entry, captured=captured))
        above += _told(name, found, given.most, given.share)
    return above


def _told(name: str, found: dict[bool, list[tuple[float, float]]], most: float, share: float) -> bool:
    """Print the line of an entry and return whether it is above a limit."""
    whole = statistics.median(seconds for seconds, _ in found[False])
    own = [own for _, own in found[True]]
    ratios = [a / b for (a, _), (b, _) in zip(found[True], found[False], strict=True)]
    ratio, middle = statistics.median(ratios), statistics.median(own)
    print(
        f"{name:24} compile {whole:5.2f} s, capture {1000 * middle:5.1f} ms, "
        f"at most {1000 * max(own):5.1f} ms, {100 * middle / whole:.2f} %; "
        f"pairs {ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
        flush=True,
    )
    return 1000 * max(own) > most or middle / whole > share


def _seconds(entry: Entry, *, captured: bool) -> tuple[float, float]:
    """Compile and call an entry; returns the CPU seconds of that, and those that the capture took of them."""
    preset = entry.on("cpu")
    assert preset is not None, f"{entry.name} is not for a CPU"
    torch.compiler.reset()
    with contextlib.ExitStack() as stack:
        program = stack.enter_context(ready(entry, preset, CORPUS.parent))
        for context in (_torch.configured({}), warnings.catch_warnings()):
            stack.enter_context(context)
        warnings.simplefilter("ignore")
        own = stack.enter_context(_timed())
        if captured:
            stack.enter_context(Lowering().looking())
            stack.enter_context(Calls().lowering())
        fn = torch.compile(program.fn, fullgraph=entry.fullgraph, dynamic=entry.dynamic or None)
        start = time.process_time()
        called(fn, program, entry)
        seconds = time.process_time() - start
        if captured != bool(own):
            raise SystemExit(f"{entry.path.name}: expected the capture to see a graph just where it is on")
        return seconds, sum(own)


@contextlib.contextmanager
def _timed() -> Iterator[list[float]]:
    """Note in the block how long each call of what sees to the capture takes."""
    taken: list[float] = []

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            result = function(*args, **kwargs)
            result = list(result) if function.__name__ == "_nodes" else result  # a generator
            taken.append(time.process_time() - start)
            return result

        return call

    with contextlib.ExitStack() as stack:
        for owner, name in _SEEN_TO:
            stack.enter_context(mock.patch.object(owner, name, around(getattr(owner, name))))
        yield taken


if __name__ == "__main__":
    sys.exit(main())
