"""The collector is off while a graph is analysed and rewritten, and as it was afterwards."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import GraphError, analyze, reinplace
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph import collector
from pytest_reinplace.passes.graph.collector import paused
from pytest_reinplace.passes.memory.geometry import Geometry
from pytest_reinplace.passes.memory.region import Region


@pytest.fixture(params=[True, False], ids=["on", "off"])
def was_on(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    gc.enable() if request.param else gc.disable()
    yield request.param
    gc.enable() if before else gc.disable()


def graph() -> GraphModule:
    build = GraphBuilder()
    x = build.placeholder(torch.arange(4))
    return build.finished([build.call(torch.ops.aten.neg.default, x)])


def test_it_is_as_it_was_afterwards(was_on: bool) -> None:
    for run in (analyze, reinplace):
        run(graph())
        assert gc.isenabled() is was_on
    with paused():
        assert not gc.isenabled()


def test_it_is_as_it_was_after_an_error(was_on: bool) -> None:
    broken = graph()
    del next(n for n in broken.graph.nodes if n.op == "call_function").meta["val"]
    with pytest.raises(GraphError):
        reinplace(broken)
    assert gc.isenabled() is was_on


def test_what_was_compared_is_freed_without_it() -> None:
    geometry = Geometry()
    rows = [Region(start, (2, 2), (16, 4), 4) for start in (0, 4)]
    assert geometry.overlap(*rows)  # by numpy: all that it keeps for regions is there
    gone = weakref.ref(geometry)
    with paused():
        del geometry
        assert gone() is None


@pytest.mark.parametrize("first_out", ["outer", "inner"])
def test_threads_that_overlap_leave_it_as_it_was(was_on: bool, first_out: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with paused():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with paused():
        thread.start()
        assert entered.wait(10)
        if first_out == "inner":
            leave.set()
            thread.join()
            assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled() is was_on


@pytest.mark.skipif(gc.get_freeze_count() > 0, reason="this Python froze some objects when it started")
def test_what_was_made_inside_is_old_afterwards() -> None:
    """The collector would look at all of it at once, which is as long as half a rewrite's step."""
    before = gc.isenabled()
    gc.enable()
    try:
        with paused():
            made: list[list[int]] = [[] for _ in range(10_000)]
        assert gc.get_count()[0] < 5_000 and len(made) == 10_000
        old = {id(o) for o in gc.get_objects(generation=2)}
        assert old.issuperset(map(id, made))
        assert gc.get_freeze_count() == 0
    finally:
        gc.enable() if before else gc.disable()


def test_what_somebody_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with paused():
            pass
        assert gc.get_freeze_count() == frozen > 0
    finally:
        gc.unfreeze()


@pytest.mark.skipif(gc.get_freeze_count() > 0, reason="this Python froze some objects when it started")
def test_cycles_that_are_left_are_collected_once_a_quarter_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that rewrites graph after graph held on to all of them: 150 KB for each small one."""

    class Cycle:
        def __init__(self) -> None:
            self.me = self

    before = gc.isenabled()
    gc.enable()
    gc.collect()
    monkeypatch.setattr(collector, "_all", 0)  # more may have been there when they were counted last
    rounds = 3 + len(gc.get_objects()) // 4 // 10_000
    first: weakref.ref[Cycle] | None = None
    try:
        for _ in range(rounds):
            with paused():
                made = [Cycle() for _ in range(10_000)]
                first = first or weakref.ref(made[0])
            del made
        assert first is not None and first() is None
    finally:
        gc.enable() if before else gc.disable()
