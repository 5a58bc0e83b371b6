import pytest
import torch


def write(x, i, old):
    y = x * 2
    new = y.index_put((torch.tensor([i]),), torch.ones(1))
    return (new, y.sum()) if old else new


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("i", [0, 1])
def test_in_place(assert_reinplaced, i, old):
    if (i, old) == (0, True):
        pytest.skip("not yet")
    assert_reinplaced(write, torch.ones(4), i, old)


def test_loop(assert_clones):
    for old in (False, True):
        torch.compile(write)(torch.ones(4), 0, old)
    assert assert_clones == []
