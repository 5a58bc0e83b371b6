import pytest
import torch


@torch.library.custom_op("dynamiclib::update", mutates_args={"cache"})
def update(cache: torch.Tensor, rows: torch.Tensor) -> None:
    cache[: len(rows)] = rows


def layer(cache, x):
    update(cache, x * 2)
    return cache.sum()


@pytest.mark.parametrize("dynamic", [None, False, True])
def test_layer(reinplace, assert_reinplaced, dynamic):
    fast = reinplace.compile(layer, dynamic=dynamic)
    for size in (2, 3, 4):
        assert fast(torch.zeros(8), torch.ones(size)) == 2 * size
    assert_reinplaced("dynamiclib::update.cache")


def test_marked(assert_clones):
    x = torch.ones(6)
    torch._dynamo.mark_dynamic(x, 0)
    assert assert_clones(layer, torch.zeros(8), x) == []
