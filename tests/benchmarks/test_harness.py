"""The benchmarks measure what they say: both sides rewrite, and figures are what the tables call them."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from pytest_reinplace.passes.oracle.verdict import judged
from pytest_reinplace.passes.strategies import RandomGraph
from pytest_reinplace.passes.verify import assert_equivalent

from ..house.checkout import ROOT, python

_NAMES = (
    *("views-first", "views-lazily", "strided", "separate-caches"),
    *("shared-cache", "chain-v1", "chain-v2", "fan-v2", "needed-copies"),
)


def load(name: str) -> ModuleType:
    """Import a module of the benchmarks, which are in the checkout only, from its file."""
    if "benchmarks" not in sys.modules:
        folder = ROOT / "benchmarks"
        spec = importlib.util.spec_from_file_location(
            "benchmarks", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None and spec.loader is not None
        sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["benchmarks"])
    return importlib.import_module(f"benchmarks.{name}")


# How many and how many bytes, of six writes; no pass can do with less.
_COPIES_LEFT = {"fan-v2": (5, 5 * 6 * 4 * 8), "needed-copies": (6, 6 * 4 * 8)}


@pytest.fixture(params=_NAMES)
def family(request: pytest.FixtureRequest) -> Any:
    found = {family.name: family for family in load("families").FAMILIES}
    assert set(found) == set(_NAMES)
    return found[request.param]


@pytest.fixture
def sides() -> Iterator[ModuleType]:
    return load("sides")  # type: ignore[return-value]


def functional(gm: Any) -> int:
    """Count the operators that a rewrite may replace."""
    return sum("functional" in str(n.target) or "_scatter" in str(n.target) or "index_put.d" in str(n.target)
               for n in gm.graph.nodes)  # fmt: skip


def test_a_family_grows_by_its_writes(family: Any) -> None:
    small, large = (family.build(n)[0] for n in (5, 10))
    assert functional(small) > 0 and functional(large) == 2 * functional(small)
    assert abs(len(family.build(family.size_for(300))[0].graph.nodes) - 300) <= 6


@pytest.mark.parametrize("side", ["Ours", "Stock"])
def test_a_side_rewrites_a_copy_and_computes_the_same(family: Any, sides: Any, side: str) -> None:
    gm, inputs = family.build(6)
    before = str(gm.graph)
    one = getattr(sides, side)(sides.copied(gm))
    one.rewrite()
    one.gm.recompile()
    assert str(gm.graph) == before and functional(gm) > 0
    assert_equivalent(gm, one.gm, inputs)
    assert not any("functional" in str(n.target) for n in one.gm.graph.nodes)
    if side == "Ours":
        count, nbytes = _COPIES_LEFT.get(family.name, (0, 0))
        assert sides.copies_left(one.gm) == count
        assert judged(RandomGraph(gm, inputs, []), optimum=False).after == nbytes


def test_copies_left_are_those_of_the_graph(sides: Any) -> None:
    families = {family.name: family for family in load("families").FAMILIES}
    for name, untouched in [("chain-v1", 6), ("separate-caches", 12), ("shared-cache", 13)]:
        gm, _ = families[name].build(6)
        assert sides.copies_left(gm) == untouched
    lazily = sides.Stock(sides.copied(families["views-lazily"].build(6)[0]))
    lazily.rewrite()
    assert sides.copies_left(lazily.gm) == 5  # Inductor takes the making of another view for a read


def test_the_core_is_a_part_of_what_is_timed(family: Any, sides: Any) -> None:
    stock = sides.Stock(sides.copied(family.build(6)[0]))
    assert stock.core_seconds == 0
    stock.rewrite()
    assert stock.core_seconds > 0


def test_peak_memory_grows_with_the_graph(sides: Any) -> None:
    chain = next(f for f in load("families").FAMILIES if f.name == "chain-v1")
    small, large = (sides.peak_bytes(chain.build(n)[0]) for n in (30, 120))
    assert 2 * small < large < 8 * small


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_the_exponent_is_that_of_the_last_sizes(power: float) -> None:
    exponent = load("ledger").exponent
    points = [(n, n**power * 3.0) for n in (100, 200, 400)]
    assert exponent(points) == pytest.approx(power)
    assert exponent([(1, 1e6), *points]) == pytest.approx(power)
    assert math.isnan(exponent(points[:1]))


def test_inductor_is_not_tried_where_it_would_take_too_long() -> None:
    ledger = load("ledger").Ledger(limit=20.0)
    assert ledger.expected("chain-v1", 100) == 0
    ledger.row("chain-v1", 100, 200).stock = 1.0
    assert ledger.expected("chain-v1", 200) == pytest.approx(4.0)
    ledger.row("chain-v1", 200, 400).stock = 2.0
    assert ledger.expected("chain-v1", 400) == pytest.approx(4.0)
    ledger.row("chain-v1", 400, 800)
    assert any("> 20?" in line for line in load("ledger").table("chain-v1", "", ledger))


def test_one_run_prints_a_table_for_every_family() -> None:
    options = ("--sizes=4,8", "--large=60", "-q", "-p", "no:cacheprovider", "--benchmark-quiet")
    done = python("-m", "pytest", "benchmarks/test_growth.py", *options, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for name in _NAMES:
        assert re.search(rf"^{name}: ", done.stdout, re.MULTILINE), name
        assert re.search(rf"^{name} +\d+ +\d\.\d+$", done.stdout, re.MULTILINE), name
    rows = re.findall(r"^([48]) +\d+ +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+)", done.stdout, re.MULTILINE)
    assert len(rows) == 2 * len(_NAMES)
    assert all(float(core) <= float(whole) for _, _, whole, core in rows)
