import torch


@torch.library.custom_op("spelllib::update", mutates_args={"cache"})
def update(cache: torch.Tensor, rows: torch.Tensor, slot: torch.Tensor) -> None:
    cache[slot] = rows


def layer(cache, x, slot):
    update(cache, x * 2, slot)
    return cache.sum()


def run():
    torch.compile(layer)(torch.zeros(8), torch.ones(2), torch.tensor([0, 5]))


def test_operator(assert_reinplaced):
    run()
    assert_reinplaced("spelllib::updat.cache")


def test_argument(assert_reinplaced):
    run()
    assert_reinplaced("cach")


def test_pattern(assert_reinplaced):
    run()
    assert_reinplaced("spellib::*")


def test_empty(assert_reinplaced):
    run()
    assert_reinplaced("")


def test_absent(assert_clones):
    run()
    assert "spelllib::update.cahce" not in assert_clones


def test_function_and_label(assert_reinplaced):
    run()
    assert_reinplaced(["spelllib::update.cache"])
