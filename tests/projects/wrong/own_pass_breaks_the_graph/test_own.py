import torch


def update(x, index, value):
    y = x + 1
    y[index] = value
    return y * 2


def test_in_place(assert_reinplaced):
    assert_reinplaced(update, torch.zeros(8), torch.tensor([1, 3]), torch.ones(2))
