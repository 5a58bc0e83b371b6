"""Programs as their authors wrote them, some of which torch.compile gets wrong (2.13), and their twins.

The projects that tests make hold this file as ``test_programs.py``: it uses nothing of ours.
"""

import pytest
import torch
from torch.library import custom_op

if not hasattr(torch.ops.miscompiled, "add_to"):

    @custom_op("miscompiled::add_to", mutates_args=("out",))
    def add_to(out: torch.Tensor, other: torch.Tensor) -> None:
        out.mul_(2)
        out.add_(other)


def op_on_a_copy(x):
    product = x @ x
    copy = product.clone()
    torch.ops.miscompiled.add_to(copy, product)
    return copy + 1


def op_on_a_copy_of_a_part(x):
    y = x + 1
    part = y[1:].clone()
    torch.ops.miscompiled.add_to(part, y[1:])
    return part


def scatter_before_zero(x):
    y = torch.slice_scatter(x, x[:2] * 2, 0, 0, 2)
    x.zero_()
    return y


def put_before_fill(x):
    y = torch.index_put(x, [torch.tensor([0, 2])], torch.ones(2, 4))
    x.fill_(7)
    return y


def row_of_an_update(x):
    y = torch.slice_scatter(x, torch.ones(2, 4), 0, 0, 2)
    x.copy_(y)
    return y[1]


def op_on_a_copy_alone(x):
    product = x @ x
    copy = product.clone()
    torch.ops.miscompiled.add_to(copy, x)
    return copy + 1


def scatter_after_zero(x):
    x.zero_()
    return torch.slice_scatter(x, x[:2] + 2, 0, 0, 2)


def row_of_a_copy(x):
    y = torch.slice_scatter(x, torch.ones(2, 4), 0, 0, 2)
    x.copy_(y)
    return y[1] * 2


WRONG = (op_on_a_copy, op_on_a_copy_of_a_part, scatter_before_zero, put_before_fill, row_of_an_update)
RIGHT = (op_on_a_copy_alone, scatter_after_zero, row_of_a_copy)


@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.__name__)
def test_wrong(program):
    torch.compile(program)(torch.arange(16.0).view(4, 4))


@pytest.mark.parametrize("program", RIGHT, ids=lambda program: program.__name__)
def test_right(program):
    torch.compile(program)(torch.arange(16.0).view(4, 4))
