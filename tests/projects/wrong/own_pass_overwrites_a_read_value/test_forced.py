import pytest
import torch


def keep(x, index, value):
    y = x * 2
    return y.index_put((index,), value), y.sum()


def fresh(x, index, value):
    y = x * 2
    y[index] = value
    return y


ARGUMENTS = torch.ones(8), torch.tensor([1, 3]), torch.zeros(2)


@pytest.mark.parametrize("program", [keep, fresh])
def test_in_place(assert_reinplaced, program):
    assert_reinplaced(program, *ARGUMENTS)


def test_not_named(assert_clones):
    torch.compile(keep)(*ARGUMENTS)
    assert "aten::index_put.self" not in assert_clones


@pytest.mark.reinplace(max_clones=0)
def test_limited():
    torch.compile(keep)(*ARGUMENTS)
