"""Pairs of scheduled operations, by what they read and write: those that race in one kernel, and others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import sympy
from torch._inductor.dependencies import MemoryDep, StarDep, WeakDep

from pytest_reinplace.passes.inductor.schedule import _torch
from pytest_reinplace.passes.inductor.schedule.races import Races
from pytest_reinplace.passes.inductor.schedule.races import _steps as steps_in

C0, C1, TMP = sympy.symbols("c0 c1 tmp0", integer=True)
# Names that writes gave: the buffers x and y are written twice, z once.
WRITES = {"x1": "x", "x2": "x", "y1": "y", "y2": "y", "z1": "z"}
VIEWS = {"part_of_x": ("x",)}


@pytest.fixture
def races(monkeypatch: pytest.MonkeyPatch) -> Races:
    monkeypatch.setattr(_torch, "shape_env", lambda: None)
    monkeypatch.setattr(_torch, "extent", lambda buffer: 96)
    monkeypatch.setattr(MemoryDep, "normalize", lambda self: self)
    buffers = {n: SimpleNamespace(get_aliases=lambda n=n: VIEWS.get(n, ())) for n in (*WRITES, *VIEWS)}
    scheduler = SimpleNamespace(mutation_real_name=WRITES, name_to_buf=buffers)
    return Races(SimpleNamespace(scheduler=scheduler))


class Node:
    """An operation, or several in one kernel: those of a list beside each other."""

    def __init__(self, *, reads: Any = (), writes: Any = (), of: Any = (), elements: Any = ()) -> None:
        self.parts, self.snodes = list(of) or [self], list(elements)
        inner = [part for n in self.snodes or self.parts if n is not self for part in n.get_nodes()]
        read = {*reads, *(d for n in inner for d in n.read_writes.reads)}
        written = {*writes, *(d for n in inner for d in n.read_writes.writes)}
        self.read_writes = SimpleNamespace(reads=read, writes=written)

    def get_nodes(self) -> list[Any]:
        return [part for n in self.snodes for part in n.get_nodes()] if self.snodes else self.parts

    def is_extern(self) -> bool:
        return False

    def is_foreach(self) -> bool:
        return bool(self.snodes)


def at(name: str, index: Any = C0, size: int = 8) -> MemoryDep:
    return MemoryDep(name, sympy.sympify(index), (C0,), (sympy.Integer(size),))


def block(name: str, index: Any) -> MemoryDep:
    """Return rows of four of which two are looked at."""
    return MemoryDep(name, index, (C0, C1), (sympy.Integer(4), sympy.Integer(2)))


STORE = Node(writes=[at("x2", C0 + 1)], reads=[StarDep("x1"), WeakDep("z", "x2")])
STORE_COLUMN = Node(writes=[at("x2", 12 * C0 + 2)])
PAIRS: dict[str, tuple[bool, Node, Node]] = {
    "another element": (True, Node(reads=[at("x1")]), STORE),
    "the same one": (False, Node(reads=[at("x1", C0 + 1)]), STORE),
    "another buffer": (False, Node(reads=[at("y1")]), STORE),
    "a view of it": (True, Node(reads=[at("part_of_x", C0 + 1)]), STORE),
    "a view of it, which begins elsewhere": (True, Node(reads=[at("part_of_x", C0 + 9)]), STORE),
    "all of it": (True, Node(reads=[StarDep("x1")]), STORE),
    "its order": (False, Node(reads=[WeakDep("x1", "x2")]), STORE),
    "elements behind": (False, Node(reads=[at("x1", C0 + 9)]), STORE),
    "elements before, backwards": (False, Node(reads=[at("x1", 0 - C0)]), STORE),
    "elements there, backwards": (True, Node(reads=[at("x1", 8 - C0)]), STORE),
    "a place that is read": (True, Node(reads=[at("x1", TMP)]), STORE),
    "a place in another column": (False, Node(reads=[at("x1", 12 * TMP)]), STORE_COLUMN),
    "a place in that column": (True, Node(reads=[at("x1", 12 * TMP + 2)]), STORE_COLUMN),
    "places in both": (True, Node(reads=[at("x1", 12 * TMP + 2 * C0)]), STORE_COLUMN),
    "a place that is counted from before": (
        True,
        Node(reads=[at("x1", 12 * TMP - 10)]),
        Node(writes=[at("x2", 86, size=1)]),
    ),
    "a place that is counted from the end": (True, Node(reads=[at("x1", 84 - 12 * TMP)]), STORE_COLUMN),
    "a place by its square": (True, Node(reads=[at("x1", 12 * TMP**2)]), STORE_COLUMN),
    "in no order": (True, Node(reads=[at("x1", sympy.Mod(C0, 4))]), STORE),
    "what was written": (False, Node(reads=[at("x2", C0)]), STORE),
    "a first version": (True, Node(reads=[at("x")]), STORE),
    "beside": (True, Node(of=[Node(reads=[at("y")]), Node(reads=[at("x1")])]), Node(of=[STORE, Node()])),
    "columns": (
        False,
        Node(reads=[block("x1", 4 * C0 + C1)]),
        Node(writes=[block("x2", 4 * C0 + C1 + 2)]),
    ),
    "columns that meet": (
        True,
        Node(reads=[block("x1", 4 * C0 + C1)]),
        Node(writes=[block("x2", 4 * C0 + C1 + 1)]),
    ),
    "one place again and again": (True, Node(reads=[at("x1", 3)]), Node(writes=[at("x2", 3)])),
    "two stores": (True, Node(writes=[at("x1")]), STORE),
    "two that add": (
        False,
        Node(writes=[MemoryDep("x1", C0, (C0,), (8,), mode="atomic_add")]),
        Node(writes=[MemoryDep("x2", C0 + 1, (C0,), (8,), mode="atomic_add")]),
    ),
    "nothing is written": (False, Node(reads=[at("x1")]), Node(reads=[at("x1", C0 + 1)])),
    "what is made": (False, Node(writes=[at("new")]), Node(reads=[at("new", C0 + 1)])),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_operations(races: Races, name: str) -> None:
    expected, one, two = PAIRS[name]
    assert (races.between(one, two) is not None) is expected
    assert (races.between(two, one) is not None) is expected


def test_steps_between_symbols_fit_in_where_they_divide_the_buffer() -> None:
    rows = sympy.Symbol("s0", integer=True, positive=True)
    assert steps_in(8 * rows, rows) == 8
    assert steps_in(8 * rows + 1, rows) is None and steps_in(8 * rows, -rows) is None


def listed(*elements: Node) -> Node:
    return Node(elements=elements)


STORES = listed(Node(reads=[at("x")], writes=[at("x1")]), Node(reads=[at("y")], writes=[at("y1")]))
LISTS: dict[str, tuple[bool, Node, Node]] = {
    "each element itself": (
        False,
        listed(Node(reads=[at("x")], writes=[at("u")]), Node(reads=[at("y")], writes=[at("v")])),
        STORES,
    ),
    "each other": (
        True,
        listed(Node(reads=[at("y")], writes=[at("u")]), Node(reads=[at("x")], writes=[at("v")])),
        STORES,
    ),
    "parts that do not meet": (
        False,
        listed(Node(reads=[at("y", C0 + 8)], writes=[at("u")]), Node(writes=[at("v")])),
        STORES,
    ),
    "what all read": (
        False,
        listed(Node(reads=[at("w")], writes=[at("u")]), Node(reads=[at("w")], writes=[at("v")])),
        listed(Node(reads=[at("w"), at("u")]), Node(reads=[at("w"), at("v")])),
    ),
    "results crosswise": (
        True,
        listed(Node(writes=[at("u")]), Node(writes=[at("v")])),
        listed(Node(reads=[at("v")]), Node(reads=[at("u")])),
    ),
    "made for one": (False, Node(writes=[at("u")]), listed(Node(reads=[at("u")]), Node(reads=[at("w")]))),
    "made for two": (True, Node(writes=[at("u")]), listed(Node(reads=[at("u")]), Node(reads=[at("u")]))),
    "stored over what another one reads": (
        True,
        listed(Node(reads=[at("x")], writes=[at("u")]), Node(reads=[at("y")], writes=[at("v")])),
        Node(reads=[at("u")], writes=[at("y1")]),
    ),
    "stored over its own": (
        False,
        listed(Node(reads=[at("x")], writes=[at("u")]), Node(reads=[at("y")], writes=[at("v")])),
        Node(reads=[at("u")], writes=[at("x1")]),
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_elements_of_lists(races: Races, name: str) -> None:
    expected, one, two = LISTS[name]
    assert (races.between(one, two) is not None) is expected
