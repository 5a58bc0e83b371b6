import torch


def update(cache, index, value):
    cache[index] = value
    return value * 2


def test_update():
    torch.compile(update)(torch.zeros(8), torch.tensor([1, 3]), torch.ones(2))
