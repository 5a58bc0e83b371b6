import torch


@torch.library.custom_op("nameslib::update", mutates_args={"cache", "sizes"})
def update(cache: torch.Tensor, rows: torch.Tensor, sizes: torch.Tensor) -> None:
    cache[: len(rows)] = rows
    sizes.add_(1)


def layer(cache, x, sizes):
    update(cache, x * 2, sizes)
    return cache.sum()


def test_names(assert_reinplaced):
    torch.compile(layer)(torch.zeros(8), torch.ones(2), torch.zeros(1))
    assert_reinplaced("nameslib::update.cache", "sizes", "nameslib::update", "nameslib::*", "*.cache")
    assert_reinplaced()
