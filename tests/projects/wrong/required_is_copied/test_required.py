import pytest
import torch

from pytest_reinplace.passes import inductor_options


@torch.library.custom_op("requirelib::update", mutates_args={"cache"})
def update(cache: torch.Tensor, rows: torch.Tensor) -> None:
    cache[: len(rows)] = rows


def keep(x, rows):
    cache = x * 2
    total = cache.exp()
    update(cache, rows)
    return cache, total


def snapshot(x, rows):
    cache = x * 2
    old = cache + 0
    update(cache, rows)
    return cache, cache + 1, old


def returned(cache, rows):
    new = cache.clone()
    update(new, rows)
    return new


ARGUMENTS = torch.ones(4), torch.zeros(2)


@pytest.mark.parametrize("name", ["aten::clone.self", "aten::clone", "self", "aten::*"])
def test_copied(name):
    torch.compile(returned, options=inductor_options(require=[name]))(*ARGUMENTS)


def test_in_place():
    torch.compile(keep, options=inductor_options(require=["requirelib::update.cache"]))(*ARGUMENTS)


def test_text():
    inductor_options(require="requirelib::update.cache")


def test_nothing():
    inductor_options(require=[])
