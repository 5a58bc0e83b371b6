import pytest
import torch


@torch.library.custom_op("lyinglib::clip", mutates_args=())
def clip(x: torch.Tensor) -> None:
    x.clamp_(max=1)


@clip.register_fake
def _(x):
    pass


def clipped(x, index, value):
    x[index] = value
    clip(x)
    return x.sum()


@pytest.mark.reinplace(tolerance=0)
def test_as_eager(assert_reinplaced):
    assert_reinplaced(clipped, torch.zeros(4), torch.tensor([1]), torch.full((1,), 3.0))
