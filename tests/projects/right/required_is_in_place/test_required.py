import torch

from pytest_reinplace.passes import inductor_options


@torch.library.custom_op("requiredlib::update", mutates_args={"cache"})
def update(cache: torch.Tensor, rows: torch.Tensor) -> None:
    cache[: len(rows)] = rows


def layer(cache, x):
    update(cache, x * 2)
    return cache.sum(), (x + 1).index_put((torch.tensor([0]),), x[:1])


def test_layer():
    options = inductor_options(require=["requiredlib::update.cache", "aten::index_put"])
    total, _ = torch.compile(layer, options=options)(torch.zeros(8), torch.ones(2))
    assert total == 4


def test_under_the_plugin(assert_reinplaced):
    options = inductor_options(require=["cache"])
    assert_reinplaced(torch.compile(layer, options=options), torch.zeros(8), torch.ones(2))
