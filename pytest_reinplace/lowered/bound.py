"""The least memory that a program needs, whatever the order of its lines and however storages are reused.

A kernel, or a call into a library, needs what it reads and what it writes at the same time. At the end all
results are held. So a program holds, at some time, at least the most of

* for each call that ran: the bytes of the distinct storages among its arguments and results;
* the bytes of the storages that it returns.

What the caller holds, and constants of the module, do not count. An input that nobody else holds may be
released before any call that does not need it: it counts where it is needed, and all such inputs are taken
off, since they were there when the program began. A storage counts whole, where a call is given a view, too;
one in a pool of Inductor's memory planning counts as far as the views reach. Nothing is said of other calls:
which nodes share a kernel, and whether it writes over what it reads, is as the program has it. What calls
take for themselves is theirs, and left out.

It is no more than the static peak: all of that was held when the call was made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .allocation import Allocation, Level, Need


@dataclasses.dataclass(frozen=True, slots=True)
class Needed:
    """What one call, or the results, need.

    Args:
        position: the position of its line.
        nbytes: the bytes of each storage, by its number.
    """

    position: int
    nbytes: Mapping[int, int]


def bound(found: Sequence[Allocation], needed: Iterable[Needed], levels: Sequence[Level]) -> Need:
    """Return the least that a program holds at some time, and the first line that needs it.

    Args:
        found: what the program takes and is given, by number.
        needed: what its calls, and its results, need.
        levels: one for each position.
    """
    counts = [not one.is_input or one.freed is not None for one in found]
    released = sum(one.nbytes for one in found if one.is_input and one.freed is not None)
    most, at = 0, 0
    for one in needed:
        nbytes = sum(size for number, size in one.nbytes.items() if counts[number]) - released
        if nbytes > most:
            most, at = nbytes, one.position
    return Need(most, at, levels[at].line, levels[at].text) if most else Need()


def reached(tensors: Iterable[Any]) -> int:
    """Return how many bytes of one storage some tensors reach; what is between their elements counts."""
    end = total = 0
    for first, last in sorted(map(_span, tensors)):
        total += max(last - max(first, end), 0)
        end = max(end, last)
    return total


def _span(tensor: Any) -> tuple[int, int]:
    if not tensor.numel():
        return 0, 0
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    first = int(tensor.storage_offset())
    last = first + sum((int(size) - 1) * int(stride) for size, stride in pairs) + 1
    return first * tensor.element_size(), last * tensor.element_size()
