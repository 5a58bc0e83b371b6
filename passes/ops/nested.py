"""Values nested in lists, tuples, dicts and slices: what lies inside, and the same with others there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from torch.fx import Node
from torch.fx.node import map_arg

LISTS = (list, tuple)  # the union of the two would be made anew each time it is asked for
T = TypeVar("T")


def inside(kind: type[T], value: Any) -> Iterator[T]:
    """Yield what there is of a kind in a nested value."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from inside(kind, item)
    elif isinstance(value, LISTS):
        for item in value:
            yield from inside(kind, item)


def nodes(value: Any) -> list[Node]:
    """Return the nodes inside the arguments of a node, in order, once for each use."""
    found: list[Node] = []
    map_arg(value, found.append)
    return found


def mapped(kinds: type | tuple[type, ...], one: Callable[[Any], Any], value: Any) -> Any:
    """Apply ``one`` to what there is of some kinds in a nested value; all else becomes ``None``."""
    if value is None:
        return None
    if isinstance(value, kinds):
        return one(value)
    if isinstance(value, dict):
        return {k: mapped(kinds, one, v) for k, v in value.items()}
    if isinstance(value, LISTS):
        return [mapped(kinds, one, v) for v in value]
    return None
