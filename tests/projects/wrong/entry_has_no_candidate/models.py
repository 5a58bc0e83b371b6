import torch

from pytest_reinplace import Program


def pure(x):
    return x + 1


def program(device):
    return Program(pure, (torch.ones(8),))


def uncompiled(device):
    return Program(torch.compiler.disable(pure), (torch.ones(8),))
