import torch

from pytest_reinplace import Program


@torch.library.custom_op("entrieslib::add_to", mutates_args={"out"})
def add_to(out: torch.Tensor, other: torch.Tensor) -> None:
    out.add_(other)


def update(cache, index, value):
    add_to(cache, cache * 2)
    cache[index] = value
    return value * 2


def keep(x):
    y = x * 2
    return y.index_put((torch.tensor([0]),), torch.ones(1)), y.sum()


def program(device, *, size, keeps=False):
    if keeps:
        return Program(keep, (torch.ones(size),))
    return Program(update, (torch.zeros(size), torch.tensor([1, 3]), torch.ones(2)))
