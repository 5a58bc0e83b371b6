import pytest
import torch


def update(cache, index, value):
    cache[index] = value
    return value * 2


def run():
    torch.compile(update)(torch.zeros(8), torch.tensor([1, 3]), torch.ones(2))


@pytest.mark.reinplace(max_clone=0)
def test_name():
    run()


@pytest.mark.reinplace(0)
def test_positional():
    run()


@pytest.mark.reinplace(max_clone_bytes="4MB")
def test_unit():
    run()


@pytest.mark.reinplace(max_clones="0")
def test_text():
    run()


@pytest.mark.reinplace(max_clones=-1)
def test_negative():
    run()


@pytest.mark.reinplace(backend="graf")
def test_backend():
    run()


@pytest.mark.reinplace(tolerance={"rtol": 1e-3, "abs": 1e-3})
def test_tolerance():
    run()


@pytest.mark.reinplace(tolerance=float("inf"))
def test_infinite_tolerance():
    run()
