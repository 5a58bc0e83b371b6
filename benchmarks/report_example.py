"""A small decoder and its tests, of which the pictures of the report are made: ``report_pictures`` runs them.

It uses nothing of the plugin, as the tests of a user who only wants to see what is copied.
"""

from __future__ import annotations

import pytest
import torch

HEADS, LENGTH, WIDTH = 8, 256, 64
Caches = list[tuple[torch.Tensor, torch.Tensor]]


@torch.library.custom_op("example::append_", mutates_args={"k_cache", "v_cache"})
def append_(k_cache: torch.Tensor, v_cache: torch.Tensor, k: torch.Tensor, v: torch.Tensor, at: int) -> None:
    """Write a key and a value into a cache."""
    k_cache[:, at] = k
    v_cache[:, at] = v


@torch.library.custom_op("example::add_flipped_", mutates_args={"out"})
def add_flipped_(out: torch.Tensor, x: torch.Tensor) -> None:
    """Add the rows in their opposite order: ``out`` must not lie in ``x``."""
    for i in range(len(out)):
        out[i] += x[-1 - i]


def decode(token: torch.Tensor, caches: Caches, at: int) -> torch.Tensor:
    """Decode one token: every cache is updated in place."""
    x = token
    for k_cache, v_cache in caches:
        append_(k_cache, v_cache, x * 0.5, x + 1, at)
        scores = torch.einsum("hd,htd->ht", x, k_cache).softmax(-1)
        x = x + torch.einsum("ht,htd->hd", scores, v_cache)
    return x


def rotated(token: torch.Tensor, caches: Caches, at: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Decode with caches that are made here, and sum up their old keys too late."""
    moved = [(k.roll(1, 1), v.roll(1, 1)) for k, v in caches]
    old = torch.stack([k for k, _ in moved]).sum()
    return decode(token, moved, at), old + sum(k.mean() for k, _ in moved)


def window(rows: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Move a window on, and return the old one as well: this copy is needed."""
    rows = rows * 0.9
    kept = rows.clone()
    rows[-1] = row
    return kept, rows


def histogram(values: torch.Tensor, bins: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Count values, and sum up what was there before."""
    counts = torch.zeros(bins) + 1
    index = (values * bins).long()
    after = counts.index_put((index,), torch.ones(len(values)), accumulate=True)
    return after, counts.sum()


def scattered(x: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Write columns of a table, which is read once more."""
    table = x.sin()
    after = table.scatter(1, index, 0.0)
    return after, table.cos()


def symmetric(x: torch.Tensor) -> torch.Tensor:
    """Need the clone that Inductor drops."""
    x = x * 2
    y = x.clone()
    add_flipped_(y, x)
    return y


def _caches(layers: int = 4) -> Caches:
    return [(torch.zeros(HEADS, LENGTH, WIDTH), torch.zeros(HEADS, LENGTH, WIDTH)) for _ in range(layers)]


@pytest.mark.parametrize("at", [3])
def test_decode(at: int) -> None:
    """Each cache is in place."""
    torch.compile(decode)(torch.ones(HEADS, WIDTH), _caches(), at)


def test_rotated() -> None:
    """The caches are copied."""
    torch.compile(rotated)(torch.ones(HEADS, WIDTH), _caches(2), 3)


def test_window() -> None:
    """One copy is needed."""
    torch.compile(window)(torch.zeros(2048, WIDTH), torch.ones(WIDTH))


@pytest.mark.parametrize("bins", [16, 65536])
def test_histogram(bins: int) -> None:
    """The counts are copied, for they are summed up afterwards."""
    torch.compile(histogram)(torch.rand(512), bins)


def test_scattered() -> None:
    """The table is copied."""
    torch.compile(scattered)(torch.rand(1024, 128), torch.zeros(1024, 4, dtype=torch.int64))


def test_symmetric() -> None:
    """Inductor's own pass is wrong here."""
    torch.compile(symmetric)(torch.arange(64.0).reshape(8, 8))
