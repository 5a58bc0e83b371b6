import pytest
import torch


def update(cache, index, value):
    cache[index] = value
    return value * 2


@pytest.fixture(scope="module")
def result():
    return torch.compile(update)(torch.zeros(8), torch.tensor([1, 3]), torch.ones(2))


def test_values(result, assert_reinplaced):
    assert result.tolist() == [2, 2]
    assert_reinplaced()


def test_clones(result, assert_clones):
    assert result.tolist() == [2, 2]
    assert assert_clones == []
