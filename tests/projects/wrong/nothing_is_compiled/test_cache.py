import pytest
import torch


def update(cache, index, value):
    cache[index] = value
    return value * 2


ARGUMENTS = torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)


def test_called_eagerly(assert_reinplaced):
    update(*ARGUMENTS)
    assert_reinplaced()


def test_compiled_and_never_called(assert_clones):
    torch.compile(update)
    assert assert_clones == []


def test_named(assert_reinplaced):
    update(*ARGUMENTS)
    assert_reinplaced("aten::index_put.self")


def test_empty(assert_clones):
    update(*ARGUMENTS)
    assert len(assert_clones) == 0


@pytest.mark.reinplace(max_clones=0)
def test_limited():
    update(*ARGUMENTS)


@pytest.mark.reinplace(max_clone_bytes="1KiB")
def test_limited_bytes():
    update(*ARGUMENTS)
