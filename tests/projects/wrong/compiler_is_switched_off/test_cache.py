import pytest
import torch


@torch.compiler.disable
def update(cache, index, value):
    cache[index] = value
    return value * 2


ARGUMENTS = torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)


def test_in_place(assert_reinplaced):
    assert_reinplaced(update, *ARGUMENTS)


def test_no_clones(assert_clones):
    assert assert_clones(update, *ARGUMENTS) == []


@pytest.fixture
def stance():
    with torch.compiler.set_stance("force_eager"):
        yield


def test_stance(stance, assert_clones):
    assert assert_clones(lambda x: x.add_(1), torch.ones(4)) == []
