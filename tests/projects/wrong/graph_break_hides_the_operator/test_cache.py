import torch


@torch.library.custom_op("hidinglib::update", mutates_args={"cache"})
def update(cache: torch.Tensor, rows: torch.Tensor, slot: torch.Tensor) -> None:
    cache[slot] = rows


@torch.compiler.disable
def write(cache, rows, slot):
    print("writing", slot)
    update(cache, rows, slot)


def layer(cache, x, slot):
    x[slot] = 1
    write(cache, x, slot)
    return cache.sum()


ARGUMENTS = torch.zeros(8), torch.ones(8), torch.tensor([0, 5])


def test_whole(assert_reinplaced):
    assert_reinplaced(layer, *ARGUMENTS)


def test_named(assert_reinplaced):
    torch.compile(layer)(torch.zeros(8), torch.ones(2), torch.tensor([0, 1]))
    assert_reinplaced("hidinglib::update.cache")
