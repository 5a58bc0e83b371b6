import torch


@torch.compile
def update(cache, index, value):
    cache[index] = value
    return value * 2


ARGUMENTS = torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)
RESULT = update(*ARGUMENTS)


def test_again(assert_reinplaced):
    assert update(*ARGUMENTS).equal(RESULT)
    assert_reinplaced("aten::index_put.self")


def test_the_same(assert_reinplaced):
    assert_reinplaced(update, *ARGUMENTS)
