import torch

from pytest_reinplace.passes import declare
from pytest_reinplace.passes.verify import check_declaration


@torch.library.custom_op("declaredlib::accumulate", mutates_args={"out"})
def accumulate(out: torch.Tensor, x: torch.Tensor) -> None:
    out.add_(x)


@torch.library.custom_op("declaredlib::reverse", mutates_args={"out"})
def reverse(out: torch.Tensor, x: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = x[len(x) - 1 - i]


def test_write_only():
    op = torch.ops.declaredlib.accumulate.default
    with declare(op, write_only=("out",)):
        check_declaration(op, torch.ones(4), torch.ones(4))


def test_elementwise():
    op = torch.ops.declaredlib.reverse.default
    with declare(op, write_only=("out",), elementwise=True):
        check_declaration(op, torch.empty(4), torch.arange(4.0))


def test_unknown_argument():
    with declare(torch.ops.declaredlib.reverse.default, write_only=("result",)):
        pass
