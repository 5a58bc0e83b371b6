"""A graph on its way through ``ReinplacePass.apply``, followed call by call: ``python tests/house/trip.py``.

One fixed graph, two layers of a decode step, is rewritten twice; the second time every call of a function of
``passes/`` is seen, calls from functions of torch in between included. Five figures are told.

*Stays*: whoever reads along reads each function once, where it is first called. A stay is as long as these
lie in one module. *Modules*: how many there are. *Returns*: stays in a module that was left before, so stays
less modules.

*Climbs*: calls of a function whose room stands above that of its caller in the order of ``layers.py``, each
as often as it is made. To come back from a call is no climb, nor is the caller's next call down. What climbs
is what no import shows: functions, methods and generators that were handed down.

*Steps up*: stays in a room above that of the stay before, whatever led there. Nearly all are a function that
goes on from a low room to one in between; the more modules there are, the more of them.

For a tree with other names than ours, ``--names FILE`` tells what a module there is called here, a pair in
each line, and so its room. ``flat_names.txt`` has those of fa885da, as git finds most of a file again. Run
this by an interpreter that imports that tree.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import itertools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

try:
    from .layers import PASSES, room
except ImportError:  # run as a script, by an interpreter that may look at another tree
    sys.path.insert(0, str(Path(__file__).parent))
    from layers import PASSES, room  # type: ignore[import-not-found,no-redef]


class Function(NamedTuple):
    """A function of ``passes/``: its module's name inside it, and its own."""

    module: str
    name: str


Call = tuple[Function | None, Function]  # who calls, nobody at first, and what


class Trip:
    """The calls of one rewrite, in their order.

    Args:
        calls: all of them, each with the innermost function of ours that it is made in.
        names: what modules are called in today's tree, where they are called otherwise.
    """

    def __init__(self, calls: list[Call], names: Mapping[str, str]) -> None:
        self.calls: list[Call] = calls
        self._names = names

    def room(self, module: str) -> str:
        """Return the room of a module."""
        found = room(self._names.get(module, module), PASSES)
        assert found is not None, f"no room is declared for {module}"
        return found

    def _is_up(self, low: str, high: str) -> bool:
        return PASSES.index(self.room(low)) < PASSES.index(self.room(high))

    def stays(self) -> list[str]:
        """Return the modules that a reader is in, one after the other."""
        read = [function.module for function in dict.fromkeys(callee for _, callee in self.calls)]
        return [m for i, m in enumerate(read) if i == 0 or m != read[i - 1]]

    def climbs(self) -> collections.Counter[tuple[Function, Function]]:
        """Return the calls that go up, and how often each is made."""
        made = (call for call in self.calls if call[0] and self._is_up(call[0].module, call[1].module))
        return collections.Counter(made)

    def figures(self) -> dict[str, int]:
        """Return how many there are of everything that is counted."""
        stays = self.stays()
        modules = len(set(stays))
        up = sum(self._is_up(a, b) for a, b in itertools.pairwise(stays))
        climbs = self.climbs().total()
        returns = len(stays) - modules
        return {"stays": len(stays), "modules": modules, "climbs": climbs, "returns": returns, "steps up": up}

    def text(self) -> str:
        """Word the figures, and the climbs by the rooms that they lead from and to."""
        lines = [", ".join(f"{count} {name}" for name, count in self.figures().items()), ""]
        by_rooms: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
        for (caller, callee), times in self.climbs().most_common():
            rooms = self.room(caller.module), self.room(callee.module)
            by_rooms[rooms].append(f"  {times:3} {'.'.join(caller)} -> {'.'.join(callee)}")
        for (low, high), calls in sorted(by_rooms.items()):
            lines += [f"{low} -> {high}", *calls]
        return "\n".join(lines)


def follow(work: Callable[[], object], names: Mapping[str, str] | None = None) -> Trip:
    """Return the calls of functions of ``passes/`` that some work makes."""
    folder = str(Path(importlib.import_module("pytest_reinplace.passes").__file__ or "").parent) + "/"
    calls: list[Call] = []
    running: list[Function] = []

    def see(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(folder):
            return
        if event == "return":
            running.pop()
            return
        module = code.co_filename.removeprefix(folder).removesuffix(".py").replace("/", ".")
        function = Function(module, code.co_qualname)
        calls.append((running[-1] if running else None, function))
        running.append(function)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return Trip(calls, names or {})


def decode_step(names: Mapping[str, str] | None = None, layers: int = 2) -> Any:
    """Return the graph: caches written by an operator, by index, by slice, and read; states; lists."""
    import torch

    ours = {new: old for old, new in (names or {}).items()}
    passes = "pytest_reinplace.passes"
    builder = importlib.import_module(f"{passes}.{ours.get('fuzz.builder', 'fuzz.builder')}")
    adversary = importlib.import_module(f"{passes}.{ours.get('fuzz.adversary', 'fuzz.adversary')}")
    aten: Any = torch.ops.aten
    b = builder.GraphBuilder()
    caches = [b.placeholder(torch.zeros(8, 16)) for _ in range(layers)]
    rows = [b.placeholder(torch.zeros(2, 16)) for _ in range(layers)]
    states = [b.placeholder(torch.zeros(16)) for _ in range(layers)]
    counters = [b.placeholder(torch.zeros(6)) for _ in range(2)]
    index, chunk = b.placeholder(torch.tensor([1, 2])), b.placeholder(torch.zeros(4, 16))
    for cache, row, state in zip(caches, rows, states, strict=True):
        part = b.call(aten.slice.Tensor, cache, 0, 2, 4)
        *_, written = b.v2(adversary.operator("bump"), {"x": (cache, part)})
        put = b.call(aten.index_put.default, written, [index], row)
        stored = b.call(aten.slice_scatter.default, put, chunk, 0, 4, 8)
        read = b.call(aten.mm.default, chunk, b.call(aten.permute.default, stored, [1, 0]))
        chunk = b.call(aten.mm.default, read, stored)
        moved = b.call(aten.add.Tensor, state, b.call(aten.select.int, chunk, 0, 0))
        b.call(aten.copy_.default, cache, stored)
        b.call(aten.copy_.default, state, moved)
    counted = b.call(aten._foreach_add.Scalar, counters, 1)
    for i, counter in enumerate(counters):
        b.call(aten.copy_.default, counter, b.item(counted, i))
    return b.finished([chunk])


def trip(names: Mapping[str, str] | None = None) -> Trip:
    """Follow the graph through the pass, after one like it, so that no import and no cache counts."""
    passes = importlib.import_module("pytest_reinplace.passes")
    passes.ReinplacePass().apply(decode_step(names).graph)
    graph = decode_step(names).graph
    return follow(lambda: passes.ReinplacePass().apply(graph), names)


def main() -> None:
    """Print the figures of the tree that this interpreter imports."""
    parser = argparse.ArgumentParser(description="Follow a graph through ReinplacePass.apply, call by call.")
    parser.add_argument("--names", type=Path, help="file of pairs: a module of that tree, and of this one")
    path = parser.parse_args().names
    names = {} if path is None else dict(line.split() for line in path.read_text().splitlines())
    print(trip(names).text())


if __name__ == "__main__":
    main()
