"""Names and patterns that mean a candidate, and how it is told why one was cloned."""

from __future__ import annotations

import pytest

from pytest_reinplace.base import wording
from pytest_reinplace.passes import Blocker, Outcome, Reason
from pytest_reinplace.passes.report import bytes_text


def outcome(op: str = "mylib::kv_update", arg: str = "cache") -> Outcome:
    return Outcome(f"{op}.{arg}", op, arg, "node", reinplaced=False, nbytes=2048)


@pytest.mark.parametrize(
    "name",
    [
        *("mylib::kv_update.cache", "mylib::kv_update", "cache"),
        *("mylib::*", "mylib::kv_*", "*.cache", "*::kv_update.cach?", "mylib::kv_update.*", "*"),
    ],
)
def test_a_name_means_a_candidate(name: str) -> None:
    assert outcome().bears(name)


@pytest.mark.parametrize(
    "name",
    [
        *("mylib::kv_update.key", "mylib::kv", "kv_update", "mylib", "Cache", "out", "mylib::kv_update."),
        *("otherlib::*", "*.key", "mylib::kv_update.?", "?", ""),
    ],
)
def test_another_name_does_not(name: str) -> None:
    assert not outcome().bears(name)


@pytest.mark.parametrize("name", ["lib::op.xs[1]", "xs[1]", "lib::op.xs", "xs", "lib::op", "*.xs", "*xs[?]"])
def test_a_list_means_its_elements(name: str) -> None:
    assert outcome("lib::op", "xs[1]").bears(name)


@pytest.mark.parametrize("name", ["lib::op.xs[0]", "xs[0]", "xs[12]", "lib::op.x", "*[?]1", "lib::op.xs1"])
def test_an_index_is_no_set_of_characters(name: str) -> None:
    assert not outcome("lib::op", "xs[1]").bears(name)


def test_why_it_was_cloned() -> None:
    blockers = tuple(Blocker(f"sum_{i}", "aten::sum", f"a.py:{i}") for i in range(5))
    plain = outcome()
    assert plain.lines() == ["mylib::kv_update.cache: 2.0 KiB (2048 B), for an unknown reason"]
    assert plain.lines(unknown="nobody looked") == ["mylib::kv_update.cache: 2.0 KiB (2048 B), nobody looked"]
    told = Outcome(
        *("lib::op.x", "lib::op", "x", "node", False, 4, Reason.STILL_READ, blockers, "b.py:7"),
        hint="wait",
        graph="body",
    )
    assert told.lines("never said") == [
        f"lib::op.x in body at b.py:7: 4 B, {Reason.STILL_READ.sentence}",
        "  held back by sum_0 (aten::sum) at a.py:0, sum_1 (aten::sum) at a.py:1, "
        "sum_2 (aten::sum) at a.py:2 and 2 more; hint: wait",
    ]


@pytest.mark.parametrize("count", [0, 1023, 1024, 1536, 1 << 20, 3 << 29, 1 << 40, 1 << 52])
def test_the_plugin_says_bytes_alike(count: int) -> None:
    assert bytes_text(count) == wording.bytes_of(count)
