import pytest
import torch


@pytest.mark.reinplace(tolerance=1e-5)
def test_step():
    x = torch.ones(4)
    torch.compile(lambda x: x.add_(1))(x)


@pytest.mark.reinplace(tolerance=1e-5)
def test_named(assert_reinplaced):
    torch.compile(lambda x, i: x.index_put_((i,), x[:1] * 2))(torch.ones(4), torch.tensor([2]))
    assert_reinplaced("aten::index_put.self")
