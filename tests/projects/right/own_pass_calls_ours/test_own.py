import pytest
import torch
from rewriting import Rewriter
from torch.fx.experimental.proxy_tensor import make_fx


def update(cache, index, value):
    cache[index] = value
    return value * 2


ARGUMENTS = torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)


@pytest.mark.parametrize(
    "pass_",
    [
        pytest.param(name, marks=pytest.mark.reinplace(pass_=name))
        for name in ("inductor", "exact", "rewriting:rewrite", "rewriting:Rewriter")
    ],
)
def test_update(assert_reinplaced, pass_):
    assert_reinplaced(update, *ARGUMENTS)


def test_applied(reinplace):
    def scatter(x):
        return (x + 1).index_put((torch.tensor([0]),), torch.ones(1))

    gm = make_fx(scatter, tracing_mode="fake")(torch.ones(4))
    assert [outcome.reinplaced for outcome in reinplace.apply(gm, Rewriter()).outcomes] == [True]
    assert gm(torch.ones(4)).tolist() == [1, 2, 2, 2]
