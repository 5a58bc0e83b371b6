import torch

from pytest_reinplace import Program


def raises(device):
    raise FileNotFoundError("weights.pt")


def pair(device):
    return torch.relu_, (torch.ones(4),)


def sized(device, *, size):
    return Program(torch.relu_, (torch.ones(size),))
