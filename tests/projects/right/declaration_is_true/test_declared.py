import torch

from pytest_reinplace.passes import declare
from pytest_reinplace.passes.verify import check_declaration


@torch.library.custom_op("truelib::negate", mutates_args={"out"})
def negate(out: torch.Tensor, x: torch.Tensor) -> None:
    torch.neg(x, out=out)


def test_negate():
    op = torch.ops.truelib.negate.default
    with declare(op, write_only=("out",), elementwise=True):
        check_declaration(op, torch.empty(4), torch.randn(4))
