import torch


def test_in_place(assert_reinplaced):
    assert_reinplaced(torch.relu_, torch.ones(4))
