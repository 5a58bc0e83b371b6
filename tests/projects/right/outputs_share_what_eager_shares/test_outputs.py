import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

INDEX, WEIGHT = torch.tensor([2]), torch.ones(4, requires_grad=True)


def itself(x):
    x[INDEX] = 1
    return x


def view(x):
    x[INDEX] = 1
    return x[1:]


def several_views(x):
    x[INDEX] = 1
    return x[1:], x.view(2, 2), x.detach(), x


def view_of_what_is_made(x):
    x[INDEX] = 1
    y = x * 2
    return y[1:], y, x[:0].clone()


def saved(x):
    x[INDEX] = 1
    return (x * WEIGHT).sum()


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", [itself, view, several_views, view_of_what_is_made, saved])
def test_in_place(program, dynamic, assert_reinplaced):
    result = assert_reinplaced(torch.compile(program, dynamic=dynamic), torch.zeros(4))
    if program is saved:
        result.backward()


@pytest.mark.parametrize("program", [itself, view, several_views])
def test_parts_of_a_subclass(program, assert_reinplaced):
    assert_reinplaced(program, TwoTensor(torch.zeros(4), torch.zeros(4)))
