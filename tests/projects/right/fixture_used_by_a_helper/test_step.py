import pytest
import torch


@pytest.fixture
def check(assert_reinplaced, assert_clones):
    def checked(fn, *arguments):
        result = assert_reinplaced(fn, *arguments)
        assert assert_clones == []
        return result

    return checked


def update(cache, index, value):
    cache[index] = value
    return value * 2


def test_update(check):
    assert check(update, torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)).tolist() == [2, 2]
