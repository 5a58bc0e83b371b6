import pytest
import torch

CACHE = torch.zeros(8)


def update(index, value):
    CACHE[index] = value
    return CACHE.sum()


@pytest.mark.reinplace(tolerance=0)
def test_as_eager(assert_reinplaced):
    assert_reinplaced(update, torch.tensor([1, 3]), torch.ones(2))
