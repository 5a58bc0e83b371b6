import torch

from pytest_reinplace import Program


def update(cache, index, value):
    cache[index] = value
    return cache * 2


def program(device):
    return Program(update, (torch.ones(8), torch.tensor([1, 3]), torch.ones(2)))
