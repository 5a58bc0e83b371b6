"""What must hold of the figures that this run has measured; ``test_growth.py`` runs before."""

from __future__ import annotations

import math

import pytest

from .families import Family
from .ledger import Ledger, Row

_EXPONENT = 1.15
_SECONDS = 1.0  # CPU time for 20,000 nodes


@pytest.fixture
def rows(family: Family, ledger: Ledger) -> list[Row]:
    """The measured graphs of a family."""
    found = list(ledger.families.get(family.name, {}).values())
    assert found, "nothing was measured: run the whole folder, pytest benchmarks"
    return found


def test_our_pass_is_faster(rows: list[Row]) -> None:
    slower = [(r.size, r.ours, r.stock) for r in rows if r.ours and r.stock and r.ours >= r.stock]
    assert slower == []


@pytest.mark.parametrize("column", ["ours", "peak"])
def test_growth_is_linear(family: Family, rows: list[Row], ledger: Ledger, column: str) -> None:
    found = ledger.exponents(family.name)[column]
    assert found <= _EXPONENT or math.isnan(found)  # of a single size there is none


def test_a_large_graph_takes_little_time(family: Family, ledger: Ledger) -> None:
    row = ledger.large[family.name]
    assert row.ours is not None and row.ours <= _SECONDS * max(1.0, row.nodes / 20_000)
