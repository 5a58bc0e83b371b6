import torch


def keep(x):
    y = x * 2
    return y.index_put((torch.tensor([0]),), torch.ones(1)), y.sum()


def test_unequal(assert_clones):
    assert assert_clones(keep, torch.ones(4)) != ["aten::index.self"]


def test_truth(assert_clones):
    assert not assert_clones(keep, torch.ones(4))


def test_text(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == "aten::index_put.self"


def test_number(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == 1


def test_set(assert_clones):
    torch.compile(keep)(torch.ones(4))
    torch.compile(keep, dynamic=False)(torch.ones(5))
    assert assert_clones == {"aten::index_put.self"}


def test_compared_from_the_other_side(assert_clones):
    expected = []
    assert expected == assert_clones(keep, torch.ones(4))
