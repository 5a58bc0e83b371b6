import torch


def two(x, index, value):
    y = x * 2
    y[index] = value
    return y, x + 3


def test_in_place(reinplace, assert_reinplaced):
    torch.compile(two)(torch.ones(4), torch.tensor([1]), torch.zeros(1))
    assert_reinplaced("aten::index_put.self")
