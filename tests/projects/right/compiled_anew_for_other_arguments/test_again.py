import torch


def update(cache, index, value, scale):
    cache[index] = value * scale
    return value


def test_again(reinplace, assert_clones):
    fast = torch.compile(update)
    for scale in (1, 2.5, torch.tensor(3.0)):
        fast(torch.zeros(8), torch.tensor([1, 3]), torch.ones(2), scale)
    fast(torch.zeros(8, dtype=torch.float64), torch.tensor([1, 3]), torch.ones(2, dtype=torch.float64), 1)
    assert assert_clones == []
    assert len(reinplace.graphs) > 1


def test_already_compiled(assert_reinplaced):
    fast = torch.compile(update)
    fast(torch.zeros(8), torch.tensor([1, 3]), torch.ones(2), 1)
    assert_reinplaced(torch.compile(update), torch.zeros(9), torch.tensor([1, 3]), torch.ones(2), 1)
