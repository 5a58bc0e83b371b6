import pytest
import torch


def scaled(x, index, value):
    y = x * 1.001
    y[index] = value
    return y


@pytest.mark.reinplace(tolerance=1e-6)
def test_in_place(assert_reinplaced):
    assert_reinplaced(scaled, torch.ones(4), torch.tensor([1]), torch.zeros(1))
