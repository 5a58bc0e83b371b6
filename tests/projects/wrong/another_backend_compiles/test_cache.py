import torch


def update(cache, index, value):
    cache[index] = value
    return value * 2


ARGUMENTS = torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)


def test_eager(assert_clones):
    torch.compile(update, backend="eager")(*ARGUMENTS)
    assert assert_clones == []


def test_aot_eager(assert_reinplaced):
    assert_reinplaced(torch.compile(update, backend="aot_eager"), *ARGUMENTS)
