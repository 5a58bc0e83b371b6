"""The way of a graph through the pass: it goes down from room to room, and seldom calls back up."""

from __future__ import annotations

import collections

from .checkout import ROOT
from .trip import Function, Trip, trip

# Of fa885da, before there were rooms: 236 stays in 68 modules, 90 climbs (`trip.py --names flat_names.txt`).
_CLIMBS = 25


def test_a_graph_seldom_climbs_back_up() -> None:
    followed = trip()

    assert followed.stays()[0] == "inductor.stage"
    assert followed.climbs().total() <= _CLIMBS, followed.text()


def test_what_is_counted() -> None:
    run, place, shape = (
        Function(module, "f") for module in ("reinplacing.run", "reinplacing.facts.place", "memory.region")
    )
    ask = Function("reinplacing.run", "ask")
    calls = [
        (None, run),
        (run, place),
        (place, shape),
        (place, ask),
        (ask, shape),
        (run, place),
        (place, ask),
    ]

    followed = Trip(calls, {})
    assert followed.stays() == [
        "reinplacing.run",
        "reinplacing.facts.place",
        "memory.region",
        "reinplacing.run",
    ]
    assert followed.climbs() == collections.Counter({(place, ask): 2})
    assert followed.figures() == {"stays": 4, "modules": 3, "climbs": 2, "returns": 1, "steps up": 1}
    assert "reinplacing.facts -> reinplacing\n    2 " in followed.text()


def test_a_module_of_another_tree_stands_where_it_is_today() -> None:
    names = dict(line.split() for line in (ROOT / "tests/house/flat_names.txt").read_text().splitlines())

    followed = Trip(
        [(None, Function("search", "best")), (Function("search", "best"), Function("fusion", "f"))], names
    )
    assert followed.room("search") == "reinplacing.decide"
    assert followed.climbs().total() == 1
