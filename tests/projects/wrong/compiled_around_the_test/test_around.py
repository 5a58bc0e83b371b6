import pytest
import torch


def keep(x):
    y = x * 2
    return y.index_put((torch.tensor([0]),), torch.ones(1)), y.sum()


@torch.library.custom_op("aroundlib::add_to", mutates_args={"out"})
def add_to(out: torch.Tensor, other: torch.Tensor) -> None:
    out.zero_()
    out.add_(other)


def step(x):
    x = x + 1
    y = x.clone()
    add_to(y, x)
    return y


@pytest.mark.reinplace(max_clones=0)
class TestSetup:
    def setup_method(self):
        self.result = torch.compile(keep)(torch.ones(4))

    def test_it(self):
        assert self.result[0][0] == 1


@pytest.mark.reinplace(max_clones=0)
class TestTeardown:
    def teardown_method(self):
        torch.compile(keep)(torch.ones(4))

    def test_it(self):
        torch.compile(lambda x: x[0].fill_(1))(torch.ones(2, 2))


@pytest.fixture
def closing():
    yield
    torch.compile(step)(torch.ones(4))


def test_miscompiled_at_the_end(closing, assert_reinplaced):
    torch.compile(lambda x, i: x.index_put_((i,), x[:1] * 2))(torch.ones(4), torch.tensor([2]))
    assert_reinplaced("aten::index_put.self")
