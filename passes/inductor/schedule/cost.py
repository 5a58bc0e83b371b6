"""What a schedule costs: the bytes that it holds, and the bytes that it moves while it runs.

The figures are for comparing two schedules of one program. Sizes are hints where they are symbolic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from . import _torch
from .races import Races, in_turn

# Bytes that could be moved while a call is started: about 3 us by a few cores, 2 us by a graphics card.
_ON_CPU, _ON_GPU = 1 << 16, 1 << 22
_SECTOR = 64  # bytes that are moved at once: who takes one element of them moves them all


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """What a schedule costs.

    Args:
        peak: the most bytes that are held at one time, inputs left out.
        moved: the bytes that are read and written, or could be while calls are started.
        waiting: how many bytes of the peak are held for an operation that writes an input.
    """

    peak: int
    moved: int
    waiting: int = dataclasses.field(default=0, compare=False)

    def is_above(self, other: Cost, *, by_peak: bool = False) -> bool:
        """Return whether a schedule costs more and holds no less.

        A byte that is held is worth one that is moved: what saves few bytes by many calls is no gain.

        Args:
            other: the cost of the other one.
            by_peak: whether what is held counts, and what is moved only where that is equal.
        """
        if by_peak:
            return (self.peak, self.moved) > (other.peak, other.moved)
        return self.peak >= other.peak and self.peak + self.moved > other.peak + other.moved

    @property
    def is_mostly_waiting(self) -> bool:
        """Return whether at least half of what is held at the peak is held for writes of inputs."""
        return 0 < self.peak <= 2 * self.waiting


class _Life(NamedTuple):
    """Which operations first and last touch a buffer, and whether it is returned."""

    first: int
    last: int
    is_returned: bool


def cost_of(nodes: list[Any]) -> Cost:
    """Return what a schedule costs.

    Args:
        nodes: the operations, fused, in order.
    """
    races, sizes = Races(nodes[0]), _torch.sizes(nodes[0])
    lives, steps = _lives(nodes, sizes, races), _steps(nodes)
    change = [0] * (steps[-1] + 2)
    for name, life in lives.items():
        change[steps[life.first]] += sizes[name]
        if not life.is_returned:
            change[steps[life.last] + 1] -= sizes[name]
    held = list(accumulate(change))
    waiting = _waiting(nodes, lives, sizes, races, steps, held.index(max(held)))
    for place, node in enumerate(nodes):
        held[steps[place]] -= sum(sizes[name] for name in _reused(place, node, lives, sizes, races))
    working = {step: node for step, node in zip(steps, nodes, strict=True) if not _torch.does_nothing(node)}
    started = sum(start(on_cpu=_torch.is_on_cpu(node)) for node in working.values())
    return Cost(max(held), started + sum(_moved(node, lives, sizes, races) for node in nodes), waiting)


def start(*, on_cpu: bool) -> int:
    """Return the bytes that could be moved while a call is started."""
    return _ON_CPU if on_cpu else _ON_GPU


def _steps(nodes: list[Any]) -> list[int]:
    """Return for each operation which call runs it: on a CPU loops in a row are one function.

    What such a function uses is allocated before it is called, and freed after it.
    """
    steps: list[int] = []
    step, is_open = -1, False
    for node in nodes:
        is_loop = _torch.is_loop_on_cpu(node)
        if not (is_open and (is_loop or _torch.does_nothing(node))):
            step, is_open = step + 1, is_loop
        steps.append(step)
    return steps


def _lives(nodes: list[Any], sizes: dict[str, int], races: Races) -> dict[str, _Life]:
    """Return who touches each buffer that is made; what never leaves a kernel of Inductor's own is not."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for place, node in enumerate(nodes):
        for name in races.touched(node) & sizes.keys():
            first.setdefault(name, place)
            last[name] = place
    returned = {home for name in _torch.returned() for home in races.lies_in(name)}
    lives = {name: _Life(place, last[name], name in returned) for name, place in first.items()}
    return {name: life for name, life in lives.items() if not _is_inside(nodes[life.first], life)}


def _is_inside(node: Any, life: _Life) -> bool:
    return life.first == life.last and not (life.is_returned or _torch.is_extern(node))


def _waiting(
    nodes: list[Any],
    lives: dict[str, _Life],
    sizes: dict[str, int],
    races: Races,
    steps: list[int],
    at: int,
) -> int:
    """Return the bytes that are held at a step and last used by an operation that writes an input."""
    storing = {place for place, node in enumerate(nodes) if steps[place] >= at and _writes_input(node, races)}
    return sum(
        sizes[name]
        for name, life in lives.items()
        if steps[life.first] <= at and life.last in storing and not life.is_returned
    )


def _writes_input(node: Any, races: Races) -> bool:
    return any(
        access.is_write
        for name, accesses in races.accesses(node).items()
        if not races.is_made(name)
        for access in accesses
    )


def _reused(
    place: int, node: Any, lives: dict[str, _Life], sizes: dict[str, int], races: Races
) -> Iterator[str]:
    """Yield the buffers whose memory a kernel gives to what it makes: it reads each element in its turn."""
    if _torch.is_extern(node) or _torch.elements(node) is not None:
        return
    accesses = races.accesses(node)
    touched = [n for n in accesses if n in lives]
    made = [n for n in touched if lives[n].first == place]
    for name in touched:
        life = lives[name]
        if life.last != place or life.first == place or life.is_returned or races.is_filled_by_others(name):
            continue
        reads = [a.dep for a in accesses[name]]
        for new in made:
            writes = [a.dep for a in accesses[new] if a.is_write]
            if sizes[new] == sizes[name] and all(in_turn(r, w) for r in reads for w in writes):
                made.remove(new)
                yield name
                break


def _moved(node: Any, lives: dict[str, _Life], sizes: dict[str, int], races: Races) -> int:
    """Return the bytes that an operation reads and writes in memory, each byte of a buffer once."""
    if _torch.does_nothing(node):
        return 0
    total = 0
    for name, accesses in races.accesses(node).items():
        if name in lives or not races.is_made(name):
            found: dict[bool, dict[Any, int]] = {False: {}, True: {}}  # read, and written
            for dep, is_write, _ in accesses:
                found[is_write][dep.index if _torch.is_known(dep) else None] = _touched(dep)
            whole = sizes[name] if name in sizes else _torch.bytes_of(name)
            total += sum(min(whole, sum(parts.values())) for parts in found.values())
    return total


def _touched(dep: Any) -> int:
    """Return the bytes that are moved for the elements that a dependency names."""
    count, size = _torch.hinted(dep)
    known = _torch.affine(dep) if count and _torch.is_known(dep) else None
    if known is None:
        return int(size)
    steps = [abs(_torch.hint(s)) for n, s in zip(dep.size, known[1], strict=True) if _torch.hint(n) != 1]
    apart = min(filter(None, steps), default=1) * size // count
    return int(count * max(size // count, min(apart, _SECTOR)))
