"""Both sides on growing graphs, and our side on a large one."""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Iterator

import pytest
from torch.fx import GraphModule

from .families import Family
from .ledger import Ledger, Row
from .sides import Ours, Stock, copied, copies_left, peak_bytes

cpu_time = pytest.mark.benchmark(timer=time.process_time, min_rounds=1)


@pytest.fixture(autouse=True)
def _only_new_objects_are_collected() -> Iterator[None]:
    """Keep the graphs of other tests out of the collector's way while a pass is timed."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def graph(family: Family, size: int) -> GraphModule:
    """The functional graph of a family and a size."""
    warm_up(family)
    return _built(family, size)


@functools.lru_cache(maxsize=1)
def _built(family: Family, size: int) -> GraphModule:
    return family.build(size)[0]


@functools.cache
def warm_up(family: Family) -> None:
    """Run both sides once on a small graph, so that no first use is timed."""
    small = family.build(8)[0]
    Ours(copied(small)).rewrite()
    Stock(copied(small)).rewrite()


def timed(
    request: pytest.FixtureRequest, side: type[Ours] | type[Stock], gm: GraphModule, rounds: int
) -> tuple[float, Ours | Stock]:
    """Let pytest-benchmark time a side on fresh copies; returns the best round and the last side."""
    last: list[Ours | Stock] = []

    def fresh() -> None:
        last[:] = [side(copied(gm))]
        gc.collect()

    benchmark = request.getfixturevalue("benchmark")
    benchmark.pedantic(lambda: last[0].rewrite(), setup=fresh, rounds=rounds, iterations=1)
    assert benchmark.stats is not None, "benchmarks are switched off (--benchmark-disable, or xdist)"
    return float(benchmark.stats.stats.min), last[0]


@cpu_time
def test_ours(
    family: Family, size: int, graph: GraphModule, ledger: Ledger, request: pytest.FixtureRequest
) -> None:
    row = ledger.row(family.name, size, len(graph.graph.nodes))
    row.ours, side = timed(request, Ours, graph, rounds=3)
    row.left = copies_left(side.gm)


@cpu_time
def test_inductor(
    family: Family, size: int, graph: GraphModule, ledger: Ledger, request: pytest.FixtureRequest
) -> None:
    expected = ledger.expected(family.name, size)
    if expected > ledger.limit:
        return  # the table says that it would take longer than the limit
    row = ledger.row(family.name, size, len(graph.graph.nodes))
    row.stock, side = timed(request, Stock, graph, rounds=1 if expected > 2 else 2)
    assert isinstance(side, Stock)
    row.core, row.stock_left = side.core_seconds, copies_left(side.gm)


def test_memory(family: Family, size: int, graph: GraphModule, ledger: Ledger) -> None:
    ledger.row(family.name, size, len(graph.graph.nodes)).peak = peak_bytes(graph)


@cpu_time
def test_large(
    family: Family, ledger: Ledger, pytestconfig: pytest.Config, request: pytest.FixtureRequest
) -> None:
    warm_up(family)
    size = family.size_for(pytestconfig.getoption("--large"))
    gm = family.build(size)[0]
    row = ledger.large[family.name] = Row(size, len(gm.graph.nodes))
    row.ours, _ = timed(request, Ours, gm, rounds=3)
