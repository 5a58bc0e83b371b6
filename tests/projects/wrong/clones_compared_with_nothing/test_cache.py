import torch


def keep(x):
    y = x * 2
    return y.index_put((torch.tensor([0]),), torch.ones(1)), y.sum()


def test_called_only(assert_clones):
    assert_clones(keep, torch.ones(4))


def test_second_forgotten(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == ["aten::index_put.self"]
    assert_clones(keep, torch.ones(5))


def test_kept_in_a_variable(assert_clones):
    found = assert_clones(keep, torch.ones(4))
    print("clones:", found)
