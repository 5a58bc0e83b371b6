"""Hints to read before the write, or to let our pass do so: followed, nothing is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_reinplace.passes import Reason, inductor_options

from .followed import (
    EIGHT,
    KEEP_ORDER,
    OUR_PASS,
    SQUARE,
    follow,
    ones,
    ran,
    scale_,
    total,
)


def read_after(x, by):
    y = x * 2
    z = y.clone()
    scale_(z, by)
    return z, total(y)


def read_before(x, by):
    y = x * 2
    old = total(y)
    z = y.clone()
    scale_(z, by)
    return z, old


def copied_for_later(cache, by):
    before = cache.clone()
    scale_(cache, by)
    return total(before)


def used_at_once(cache, by):
    before = total(cache)
    scale_(cache, by)
    return before


def summed_before(x, by):
    y = x * 2
    old = y.sum()
    scale_(y, by)
    return y, old


@pytest.mark.parametrize("under_test", ["inductor", "exact"])
@pytest.mark.parametrize(("program", "changed"), [(read_after, read_before), (read_before, read_before)])
def test_read_the_old_value_before_the_write(program: Any, changed: Any, under_test: str) -> None:
    hint = Reason.STILL_READ.hint
    follow(program, changed, EIGHT, hint, under_test, after={"options": KEEP_ORDER})


def test_use_a_copy_before_its_source_is_overwritten() -> None:
    hint, after = Reason.OVERWRITTEN.hint, {"options": KEEP_ORDER}
    follow(copied_for_later, used_at_once, EIGHT, hint, "exact", after=after)


def our_pass_without_copies(program: Callable[..., Any], inputs: tuple[Any, ...], hint: str) -> None:
    """Hold both ways that a hint names: our pass under test, and in what the user compiles."""
    assert hint in [o.hint for o in ran(program, inputs, "inductor").clones]
    assert ran(program, inputs, "exact").clones == ()
    assert ran(program, inputs, "inductor", options=inductor_options()).clones == ()


def test_our_pass_reads_before_the_write() -> None:
    our_pass_without_copies(summed_before, EIGHT, f"our pass reads it before the write: {OUR_PASS}")


def test_our_pass_does_not_miss_it() -> None:
    def project(x, row):
        y = x @ x
        y[0] = row
        return y

    our_pass_without_copies(project, (*SQUARE, ones(4)), Reason.MISSED.hint)


def test_our_pass_copies_less() -> None:
    inputs = (*SQUARE, ones(4, 4) * 2)

    def both(cache, by):
        before = cache.clone()
        scale_(cache, by)
        return before @ cache

    write, back = ran(both, inputs, "inductor").clones
    whole = "128 B here and for what follows"
    assert write.hint == (
        f"our pass copies 64 B, for aten::mm, instead of {whole}: {OUR_PASS}; that copy is still a clone"
    )
    assert [b.op for b in write.blockers] == ["aten::mm"]
    assert (back.follows, back.why, back.hint) == (
        write.named,
        f"follows from the clone of hinttest::scale_.x at {write.source}",
        "",
    )
    assert write.nbytes + back.nbytes == 128
    for ours in (ran(both, inputs, "exact"), ran(both, inputs, "inductor", options=inductor_options())):
        assert [o.nbytes for o in ours.clones] == [64]  # so a test that allows none stays red
    assert write.source is not None and "test_hints_order.py:" in write.source
