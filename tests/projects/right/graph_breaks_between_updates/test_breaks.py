import torch


def update(cache, index, value):
    cache[index] = value
    torch._dynamo.graph_break()
    cache[0] = 3
    return cache.sum()


ARGUMENTS = torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)


def test_two_graphs(reinplace, assert_clones):
    assert assert_clones(update, *ARGUMENTS) == []
    assert len(reinplace.graphs) == 2


def test_compiled(assert_reinplaced):
    assert assert_reinplaced(torch.compile(update), *ARGUMENTS) == 5
