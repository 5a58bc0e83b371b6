import torch

PUT = "aten::index_put.self"


def keep(x):
    y = x * 2
    return y.index_put((torch.tensor([0]),), torch.ones(1)), y.sum()


@torch.library.custom_op("searchlib::update", mutates_args={"cache"})
def update(cache: torch.Tensor, rows: torch.Tensor) -> None:
    cache[: len(rows)] = rows


def test_in(assert_clones):
    torch.compile(keep)(torch.ones(4))
    torch.compile(update)(torch.zeros(8), torch.ones(2))
    assert PUT in assert_clones
    assert "searchlib::update.cache" not in assert_clones
    assert sorted(assert_clones) == [PUT]
    assert len(assert_clones) == 1


def test_listed(assert_clones):
    assert_clones(keep, torch.ones(4)) == [PUT]  # noqa: B015


def test_other_containers(assert_clones):
    assert assert_clones(keep, torch.ones(4)) == {PUT}
    expected = (PUT,)
    assert expected == assert_clones(keep, torch.ones(5))
    assert assert_clones == [PUT, PUT]


def test_any_order(assert_clones):
    torch.compile(keep)(torch.ones(4))
    torch.compile(lambda x: (x[0].exp(), x.clone()[1:]))(torch.ones(2))
    assert set(assert_clones) >= {PUT}
