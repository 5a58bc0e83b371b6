import torch


def update(x, index, value):
    x[index] = value
    return value * 2


ARGUMENTS = torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)


def test_in_place(assert_reinplaced):
    assert_reinplaced(update, *ARGUMENTS)


def test_limit(assert_clones):
    assert assert_clones(update, *ARGUMENTS) == []
