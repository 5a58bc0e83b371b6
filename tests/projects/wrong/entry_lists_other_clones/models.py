import torch

from pytest_reinplace import Program


def update(cache, index, value):
    cache[index] = value
    return value * 2


def keep(cache, index, value):
    y = cache * 2
    return y.index_put((index,), value), y.sum()


def program(device, *, keeps):
    return Program(keep if keeps else update, (torch.ones(8), torch.tensor([1, 3]), torch.ones(2)))
