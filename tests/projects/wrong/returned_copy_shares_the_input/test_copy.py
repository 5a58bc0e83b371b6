import pytest
import torch


def updated(x, index):
    x[index] = 1
    return x.clone()


ARGUMENTS = torch.zeros(4), torch.tensor([2])


def test_in_place(assert_reinplaced):
    assert_reinplaced(updated, *ARGUMENTS)


@pytest.mark.reinplace(tolerance=0)
def test_as_eager(assert_reinplaced):
    assert_reinplaced(updated, *ARGUMENTS)


@pytest.mark.reinplace(max_clones=0)
def test_limit():
    torch.compile(updated)(*ARGUMENTS)
