"""Mutants of the post-grad rules: each is one, some are found in few graphs, and the right rules never."""

from __future__ import annotations

from typing import Any

import pytest

from .test_harness import load

TABLE: Any = load("mutant_table")
MUTANTS: Any = load("mutants")
FEW = range(60)


def rows(*parts: str) -> list[Any]:
    """Return the mutants of some modules that bend some texts."""
    return [m for m in TABLE.MUTANTS if any(part in m.name for part in parts)]


def test_each_mutant_changes_what_is_there_once() -> None:
    assert len(TABLE.MUTANTS) >= 40 and len({m.name for m in TABLE.MUTANTS}) == len(TABLE.MUTANTS)
    for mutant in TABLE.MUTANTS:
        assert set(MUTANTS.rules_of(mutant)) == set(MUTANTS.rules_of(MUTANTS.AS_IT_IS))


def test_a_mutant_of_a_line_that_is_gone_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected once in no_ops.py, found 0: if is_gone:"):
        MUTANTS.rules_of(TABLE.Mutant("no_ops", "if is_gone:", "if True:"))


def test_mutants_are_found_and_the_rules_as_they_are_are_not() -> None:
    chosen = rows(
        "cat_of_split: if ground.alike(cat, source) and g", "no_ops: goes", "split_of_cat: if _dtype"
    )
    *found, right = MUTANTS.hunted(FEW, chosen)
    assert len(found) == 3 and right[0] == {} and right[1] > 0
    for told, graphs in found:
        assert MUTANTS.APPLICATION in told and graphs >= 1


def test_what_processes_find_is_put_together() -> None:
    one: Any = [({"a": (4, "x")}, 2), ({}, 1)]
    other: Any = [({"a": (3, "y"), "b": (9, "z")}, 1), ({}, 0)]
    assert MUTANTS._merged([one, other]) == [({"a": (3, "y"), "b": (9, "z")}, 3), ({}, 1)]
