import torch


@torch.library.custom_op("idlelib::update", mutates_args={"cache"})
def update(cache: torch.Tensor, rows: torch.Tensor, slot: torch.Tensor) -> None:
    cache[slot] = rows


def layer(cache, x, slot):
    update(cache, x * 2, slot)
    return cache.sum()


def test_in_place(assert_reinplaced):
    assert_reinplaced(layer, torch.zeros(8), torch.ones(2), torch.tensor([0, 5]))


def test_applied(reinplace):
    from rewriting import rewrite
    from torch.fx.experimental.proxy_tensor import make_fx

    def scatter(x):
        return (x + 1).index_put((torch.tensor([0]),), torch.ones(1))

    report = reinplace.apply(make_fx(scatter, tracing_mode="fake")(torch.ones(4)), rewrite)
    assert [outcome.reinplaced for outcome in report.outcomes] == [True]
