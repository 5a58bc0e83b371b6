"""Pending reads of a buffer: what may touch a region is found, and little else is looked at."""

from __future__ import annotations

import random

import pytest
import torch
from torch.fx import Graph

from pytest_reinplace.passes.memory.geometry import Geometry
from pytest_reinplace.passes.memory.region import Region
from pytest_reinplace.passes.reinplacing.facts.pending import Pending, Shelf
from pytest_reinplace.passes.reinplacing.facts.place import Place, Read, Storage

STORAGE = Storage(0, Graph().placeholder("x"))


def read(view: torch.Tensor, time: float) -> Read:
    return Read(STORAGE.node, time, Place(STORAGE, Region.of(view), view))


def pending(geometry: Geometry, reads: list[Read], *, sort: bool) -> Pending:
    made = Pending(geometry)
    made.add(reads[: len(reads) // 2])
    if sort:
        made.sort(Shelf(geometry, reads))
    made.add(reads[len(reads) // 2 :])
    return made


def views_of(base: torch.Tensor, rng: random.Random) -> torch.Tensor:
    view = base
    for dim in range(view.dim()):
        start = rng.randrange(view.shape[dim])
        length = rng.randrange(0, view.shape[dim] - start + 1)
        view = view.narrow(dim, start, length)
        view = view[(slice(None),) * dim + (slice(None, None, rng.choice((1, 1, 2, 3))),)]
    return view.transpose(0, -1) if rng.random() < 0.3 else view


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_every_later_read_that_overlaps_is_found(seed: int, sort: bool) -> None:
    rng, geometry = random.Random(seed), Geometry()
    base = torch.empty(rng.choice(((60,), (6, 10), (3, 4, 5))))
    reads = [read(views_of(base, rng), rng.randrange(100)) for _ in range(50)]
    found = pending(geometry, reads, sort=sort)
    for now in sorted(rng.randrange(100) for _ in range(20)):
        region = Region.of(views_of(base, rng))
        near = list(found.near(region, now))
        assert len(near) == len(set(near))
        assert all(r.time > now for r in near)
        hits = {r for r in reads if r.time > now and geometry.overlap(r.place.region, region)}
        assert hits <= set(near)


def test_a_symbolic_region_may_touch_all() -> None:
    import sympy

    geometry, base = Geometry(), torch.empty(40)
    reads = [read(base[i : i + 1], 5) for i in range(40)]
    found = pending(geometry, reads, sort=True)
    symbol = sympy.Symbol("s", integer=True, positive=True)
    assert set(found.near(Region(symbol, (1,), (4,), 4), 0)) == set(reads)


@pytest.mark.parametrize(
    "part",
    [
        lambda base, i: base[i],
        lambda base, i: base[:, i],
        lambda base, i: base.view(-1)[i :: base.shape[1]],
        lambda base, i: base.view(8, 8, -1)[:, i // 8, i % 8],
    ],
    ids=["rows", "columns", "interleaved", "inner"],
)
def test_parts_that_lie_apart_are_not_looked_at(part: object) -> None:
    """Without the right line to sort by, each question would meet all 64 reads."""
    geometry, base = Geometry(), torch.empty(64, 64)
    reads = [read(part(base, i), 5) for i in range(64)]  # type: ignore[operator]
    found = pending(geometry, reads, sort=True)
    met = sum(len(list(found.near(r.place.region, 0))) for r in reads)
    assert met <= 8 * 64


def test_reads_that_are_over_are_forgotten() -> None:
    geometry, base = Geometry(), torch.empty(64)
    reads = [read(base, time) for time in range(64)]
    found = pending(geometry, reads, sort=True)
    whole = Region.of(base)
    assert len(list(found.near(whole, 62))) == 1
    assert len(list(found.near(whole, 0))) == 1, "asking about the past is no use: time goes forward"
