"""Hints to read before the write, or to let our pass do so: followed, nothing is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.judge.before import Before
from pytest_reinplace.judge.judge import judge
from pytest_reinplace.passes import Reason, inductor_options

from .followed import (
    EIGHT,
    KEEP_ORDER,
    OUR_PASS,
    PLACE,
    SQUARE,
    aten,
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


def put_rows(cache, rows):
    new = cache.index_put((PLACE,), rows[:1])
    result = cache @ new
    cache.copy_(new)
    return result


def scaled_in_a_copy(cache, by):
    """Torch 2.13 drops the clone and copies for the call; 2.15 keeps it, and the call writes into it."""
    new = cache.clone()
    scale_(new, by)
    result = cache @ new
    cache.copy_(new)
    return result


@pytest.mark.parametrize("program", [put_rows, scaled_in_a_copy])
def test_our_pass_copies_less(program: Any) -> None:
    inputs = (*SQUARE, ones(4, 4) * 2)
    write, back = ran(program, inputs, "inductor").clones
    whole = "128 B here and for what follows"
    assert write.hint == (
        f"our pass copies 64 B, for aten::mm, instead of {whole}: {OUR_PASS}; that copy is still a clone"
    )
    assert [b.op for b in write.blockers] == ["aten::mm"]
    assert (back.follows, back.why, back.hint) == (
        write.named,
        f"follows from the clone of {write.label} at {write.source}",
        "",
    )
    assert write.nbytes + back.nbytes == 128
    for ours in (ran(program, inputs, "exact"), ran(program, inputs, "inductor", options=inductor_options())):
        assert [o.nbytes for o in ours.clones] == [64]  # so a test that allows none stays red


def test_a_clone_into_which_a_call_writes_is_copied_instead_of_what_our_pass_copies() -> None:
    def program(x, rows):
        new = aten.index_put(x.clone(), [PLACE], rows)
        result = x @ new
        x.copy_(new)
        return result

    gm = make_fx(program, tracing_mode="fake", _allow_non_fake_inputs=True)(*SQUARE, ones(1, 4))
    before = Before.of(gm)
    (call,) = gm.graph.find_nodes(op="call_function", target=aten.index_put.default)
    call.target = aten.index_put_.default
    write, put, back = judge(before, gm.graph).report.outcomes
    assert (write.label, put.reinplaced, back.follows) == ("aten::clone.self", True, write.named)
    assert write.hint.startswith("our pass copies 64 B, for aten::mm, instead of 128 B here and for")
