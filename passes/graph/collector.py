"""Python's cyclic garbage collector, which has nothing to find while a graph is analysed and rewritten."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Keep the collector from running inside, where it would run otherwise.

    A model is hundreds of thousands of small objects that all stay until the end. Each time their number has
    grown by some, the collector looks at every one of them, and at all that the process holds besides: up to
    half of the time that a long graph takes. Memory is still freed by reference counts.

    What was made inside and is left is old then: the collector does not begin with all of it at once.

    Threads may overlap: who comes first switches it on again, at the latest when all have left.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _make_old()
            gc.enable()


_FEW = 20_000
_made = 0  # since all was looked at: objects that were made inside and are left
_all = 0  # the others, when they were counted last


def _make_old() -> None:
    """Put all objects into the oldest generation, which takes no time; what is frozen stays frozen.

    Of those the collector counts only what has outlived a collection, so it would never look at them: cycles
    would be left for good. It is called here as it would have called itself, once a quarter is new.

    Python 3.12 freezes some when it starts, so there this does nothing.
    """
    global _made, _all
    if not gc.get_freeze_count():
        _made += gc.get_count()[0]
        gc.freeze()
        gc.unfreeze()
        if _made > max(_FEW, _all // 4):
            _all = len(gc.get_objects()) - _made  # counted only now: it takes tens of milliseconds
            if _made > _all // 4:
                gc.collect()
                _made = 0
