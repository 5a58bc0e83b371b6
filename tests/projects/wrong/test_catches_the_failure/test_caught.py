import contextlib

import pytest
import torch


@torch.library.custom_op("caughtlib::add_to", mutates_args={"out"})
def add_to(out: torch.Tensor, other: torch.Tensor) -> None:
    out.zero_()
    out.add_(other)


def step(x):
    x = x + 1
    y = x.clone()
    add_to(y, x)
    return y


def test_expected(assert_reinplaced):
    with pytest.raises(AssertionError):
        assert_reinplaced(step, torch.ones(4))


def test_ignored(assert_clones):
    with contextlib.suppress(AssertionError):
        assert assert_clones(step, torch.ones(4)) == []


def test_asked_first(assert_clones):
    with contextlib.suppress(AssertionError):
        assert len(assert_clones) == 0
    torch.compile(step)(torch.ones(4))
