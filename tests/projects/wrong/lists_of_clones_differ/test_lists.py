import torch

PUT, SLICE = "aten::index_put.self", "aten::slice_scatter.self"


def keep(x):
    y = x * 2
    first = y.index_put((torch.tensor([0]),), torch.ones(1))
    second = y.index_put((torch.tensor([1]),), torch.ones(1))
    return first, second, y.sum()


def test_too_short(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == [PUT]


def test_too_long(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == [PUT, PUT, SLICE]


def test_other_counts(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == [PUT, SLICE]


def test_once_too_often(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == [PUT] * 3


def test_unique(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == sorted({PUT})


def test_pattern(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == ["aten::*", "aten::*"]
