import torch


def update(cache, index, value):
    cache[index] = value
    return value * 2


ARGUMENTS = torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)


def test_in_place(assert_reinplaced):
    torch.compile(update)(*ARGUMENTS)


def test_no_clones(assert_clones):
    torch.compile(update)(*ARGUMENTS)
    print(assert_clones)


class TestBoth:
    def test_one_of_two(self, assert_reinplaced, assert_clones):
        assert_reinplaced(update, *ARGUMENTS)
