import pytest
import torch


def result(x, index):
    x[index] = 1.001 if torch.compiler.is_compiling() else 1.0
    return x * 2


def state(x, index):
    x[index] = 7 if torch.compiler.is_compiling() else 8
    return x.shape[0]


def shared(x, index):
    x[index] = 1
    return x.clone() if torch.compiler.is_compiling() else x


@pytest.mark.reinplace(pass_="exact", tolerance={"rtol": 1e-4, "atol": 0.0})
@pytest.mark.parametrize("program", [result, state, shared])
def test_as_eager(assert_reinplaced, program):
    assert_reinplaced(program, torch.ones(4), torch.tensor([2]))
