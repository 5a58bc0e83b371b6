import pytest
import torch


def keep(x):
    y = x * 2
    return y.index_put((torch.tensor([0]),), torch.ones(1)), y.sum()


@pytest.mark.xfail(reason="a clone is left", strict=True)
def test_in_place(assert_reinplaced):
    assert_reinplaced(keep, torch.ones(4))


@pytest.mark.xfail(reason="a clone is left", raises=AssertionError)
def test_no_clones(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == []


def test_refused(assert_reinplaced):
    with pytest.raises(AssertionError, match="1 candidate not in place: aten::index_put.self"):
        assert_reinplaced(keep, torch.ones(4))
