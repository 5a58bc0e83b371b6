"""One node put in the place of another for all that used it, which is kept as one line and not for each user.

Inductor takes the wrappers of a chain apart from the last to the first, and at each one renames all that come
after it: kept one by one, that is the square of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch.fx import Node
from torch.fx.node import map_arg

MANY = 32  # users of a node; those beyond are not compared one by one
Given = tuple[Any, Any]  # args and kwargs


class Moved(NamedTuple):
    """The node that all users of another one are given in its place, and the users that only that changed."""

    new: Node
    users: Sequence[Node]

    @classmethod
    def of(cls, old: Node, users: Sequence[Node], known: Callable[[Node], Given | None]) -> Moved | None:
        """Return what the users of a node are given now; ``None`` where that is no one node.

        Of many users the last ones are believed to be as the first. Whether they changed in another way is
        seen when the whole graph is looked at.

        Args:
            old: the node, which may have been erased.
            users: those that it had.
            known: what a node was given then, ``None`` where that is not to be kept as a name.
        """
        if old.users:
            return None
        first = next((user for user in users if user.prev.next is user and known(user) is not None), None)
        if first is None:
            return None
        given = known(first)
        new = next((n for n in first.all_input_nodes if _is_only_renamed(first, old, n, given)), None)
        if new is None or any(user not in new.users and user.prev.next is user for user in users):
            return None
        moved = [user for user in users if user in new.users]
        few = [user for user in moved[:MANY] if _is_only_renamed(user, old, new, known(user))]
        return cls(new, [*few, *(user for user in moved[MANY:] if known(user) is not None)])


def _is_only_renamed(user: Node, old: Node, new: Node, given: Given | None) -> bool:
    wanted = map_arg(given, lambda node: new if node is old else node)
    return given is not None and same(wanted, (user.args, user.kwargs))


class Renames:
    """What nodes are called after all steps, by the time at which they were used.

    Args:
        steps: of each step the nodes that lost all their users, each with the one that has them now.
    """

    def __init__(self, steps: Sequence[Mapping[Node, Node]]) -> None:
        self._found: dict[Node, list[tuple[int, Node]]] = {}
        for time, step in enumerate(steps):
            for old, new in step.items():
                self._found.setdefault(old, []).append((time, new))
        self._last: dict[tuple[int, Node], Node] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def of(self, given: Any, since: int) -> Any:
        """Return arguments that a node had after the step ``since`` (-1: before all), as they became."""
        return map_arg(given, lambda node: self._of(node, since))

    def _of(self, node: Node, since: int) -> Node:
        place, way = (since, node), list[tuple[int, Node]]()
        while place not in self._last:
            way.append(place)
            following = next((one for one in self._found.get(place[1], ()) if one[0] > place[0]), None)
            if following is None:
                self._last[place] = place[1]
                break
            place = following
        last = self._last[place]
        self._last.update(dict.fromkeys(way, last))
        return last


def same(one: Any, other: Any) -> bool:
    """Return whether arguments hold the same objects. FX copies what holds them, and never them."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, slice):
        one, other = ((of.start, of.stop, of.step) for of in (one, other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return False
