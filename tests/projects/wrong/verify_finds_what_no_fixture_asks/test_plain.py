import torch


@torch.library.custom_op("plainlib::add_to", mutates_args={"out"})
def add_to(out: torch.Tensor, other: torch.Tensor) -> None:
    out.zero_()
    out.add_(other)


def step(x):
    x = x + 1
    y = x.clone()
    add_to(y, x)
    return y


def test_shape():
    assert torch.compile(step)(torch.ones(4)).shape == (4,)


def test_own():
    assert torch.compile(step)(torch.ones(4)).tolist() == [2, 2, 2, 2]


def test_right():
    assert torch.compile(lambda x: x.add_(1))(torch.ones(4)).tolist() == [2, 2, 2, 2]
