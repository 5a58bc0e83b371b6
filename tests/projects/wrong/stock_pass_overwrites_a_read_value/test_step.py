import pytest
import torch


@torch.library.custom_op("steplib::add_to", mutates_args={"out"})
def add_to(out: torch.Tensor, other: torch.Tensor) -> None:
    out.zero_()
    out.add_(other)


def step(x):
    x = x + 1
    y = x.clone()
    add_to(y, x)
    return y


def test_in_place(assert_reinplaced):
    assert_reinplaced(step, torch.ones(4))


def test_no_clones(assert_clones):
    assert assert_clones(step, torch.ones(4)) == []


@pytest.mark.reinplace(max_clones=0)
def test_within_the_limit():
    torch.compile(step)(torch.ones(4))


def test_measured(reinplace):
    assert reinplace.run(step, torch.ones(4)).peak_bytes <= 64


@pytest.mark.reinplace(tolerance=1e-6)
def test_as_eager(assert_clones):
    assert assert_clones(step, torch.ones(4)) == []


@pytest.mark.reinplace(pass_="exact", max_clones=1)
def test_ours_is_right():
    assert torch.compile(step)(torch.ones(4)).tolist() == [2, 2, 2, 2]
