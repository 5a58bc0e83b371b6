import pytest
import torch


def update(cache, index, value):
    cache[index] = value
    return value * 2


def test_in_place(assert_reinplaced):
    assert_reinplaced(update, torch.zeros(8), torch.tensor([1, 3]), torch.ones(2))


@pytest.mark.reinplace(max_clones=0)
def test_limit():
    torch.compile(update)(torch.zeros(8), torch.tensor([1, 3]), torch.ones(2))


@pytest.mark.reinplace(backend="graph")
def test_values():
    assert update(torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)).tolist() == [2, 2]
