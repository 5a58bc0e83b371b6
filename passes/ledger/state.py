"""A graph as it was at some point: its nodes in their order, with what they were given."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from .. import _torch
from ..errors import ReinplaceError
from ..graph.copy import copied
from .copies import KEPT, Copy, copies_of
from .renamed import Renames, same


class Entry(NamedTuple):
    """A node as it was: FX puts new objects in the place of arguments that change, so the old ones stay."""

    node: Node
    op: str
    target: Any
    args: Any
    kwargs: Any
    kept: Any
    meta: dict[str, Any]
    copies: tuple[Copy, ...]

    @classmethod
    def of(cls, node: Node) -> Entry:
        """Return a node as it is."""
        kept, copies = node.meta.get(KEPT), tuple(copies_of(node))
        return cls(node, node.op, node.target, node.args, node.kwargs, kept, dict(node.meta), copies)

    def is_now(self) -> bool:
        """Return whether the node is still so. What it computes is asked, not what is noted of it."""
        node = self.node
        return (
            node.args is self.args
            and node.kwargs is self.kwargs
            and node.target is self.target
            and node.meta.get(KEPT) == self.kept
        )

    def given_now(self) -> Entry:
        """Return the same with what the node is given now."""
        node = self.node
        return Entry(node, self.op, self.target, node.args, node.kwargs, self.kept, self.meta, self.copies)

    def renamed(self, renames: Renames, since: int) -> Entry:
        """Return what the node was given after the step ``since`` under the names of now."""
        given = renames.of((self.args, self.kwargs), since)
        if same(given, (self.args, self.kwargs)):
            return self
        current = (self.node.args, self.node.kwargs)
        args, kwargs = current if same(given, current) else given
        return self._replace(args=args, kwargs=kwargs)


State = Mapping[Node, Entry]


def now(graph: Graph, last: State) -> State:
    """Return a graph as it is; ``last`` itself where it is still so. It takes a look at each node."""
    if _is_still(graph, last):
        return last
    state: dict[Node, Entry] = {}
    for node in graph.nodes:
        entry = last.get(node)
        state[node] = entry if entry is not None and entry.is_now() else Entry.of(node)
    return state


def _is_still(graph: Graph, last: State) -> bool:
    """Return whether a graph is as it was. Most passes change nothing, so this is what a ledger costs."""
    if len(graph.nodes) != len(last):
        return False
    for node, entry in zip(graph.nodes, last.values(), strict=True):
        if (
            node is not entry.node
            or node.args is not entry.args
            or node.kwargs is not entry.kwargs
            or node.target is not entry.target
            or node.meta.get(KEPT) != entry.kept
        ):
            return False
    return True


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """What one application changed.

    Args:
        gone: the nodes that it erased, or changed, as they were.
        come: those that it made, or changed, as they are.
        behind: of each new one the node that stands before it, ``None`` at the beginning.
        renamed: the nodes whose users were all given another one, which are in no other field for that.
    """

    gone: tuple[Entry, ...]
    come: tuple[Entry, ...]
    behind: Mapping[Node, Node | None]
    renamed: Mapping[Node, Node] = dataclasses.field(default_factory=dict)

    @classmethod
    def between(cls, before: State, after: State) -> Step:
        """Return what is different between two states, but for the order."""
        gone = tuple(entry for node, entry in before.items() if after.get(node) is not entry)
        come = tuple(entry for node, entry in after.items() if before.get(node) is not entry)
        return cls(gone, come, {})

    @property
    def first(self) -> Node | None:
        """The first node that it erased; where it erased none the first that it made, or changed."""
        gone, come = ([entry.node for entry in entries] for entries in (self.gone, self.come))
        changed = set(gone) & set(come)
        return next(iter([n for n in (*gone, *come) if n not in changed] or gone), None)


def after(state: State, steps: Sequence[Step]) -> State:
    """Return the state that steps leave, which each say where their new nodes stand."""
    entries, since = dict(state), dict[Node, int]()
    following: dict[Node | None, list[Node]] = {}
    for time, step in enumerate(steps):
        for entry in step.gone:
            entries.pop(entry.node, None)
        for entry in step.come:
            entries[entry.node] = entry
            since[entry.node] = time
        for node, before in step.behind.items():
            following.setdefault(before, []).insert(0, node)
    if renames := Renames([step.renamed for step in steps]):
        entries = {node: entry.renamed(renames, since.get(node, -1)) for node, entry in entries.items()}
    ordered: dict[Node, Entry] = {}
    for place in (None, *state):
        _place(place, following, entries, ordered)
    return ordered


def _place(
    node: Node | None,
    following: Mapping[Node | None, list[Node]],
    entries: Mapping[Node, Entry],
    ordered: dict[Node, Entry],
) -> None:
    """Put a node, if it is there, and those that were put behind it, in their order."""
    pending = [node]
    while pending:
        place = pending.pop()
        if place in entries and place is not None:
            ordered[place] = entries[place]
        pending.extend(reversed(following.get(place, ())))


class Attributes:
    """The tensors and subgraphs that a graph takes from its module, as they were when it first did."""

    def __init__(self, gm: GraphModule) -> None:
        self._gm = gm
        self._found: dict[str, Any] = {}

    def note(self, entries: Iterable[Entry]) -> None:
        """Note what nodes take that no other one took; a subgraph as a copy."""
        for entry in entries:
            if entry.op in ("get_attr", "call_module") and entry.target not in self._found:
                value: Any = self._gm
                for part in str(entry.target).split("."):
                    value = getattr(value, part)
                self._found[entry.target] = copied(value) if isinstance(value, GraphModule) else value

    def module_of(self, state: State) -> GraphModule:
        """Return a graph module for a state, with nodes of its own.

        Raises:
            ReinplaceError: it is between two rules that did more than was seen, and no graph.
        """
        graph, made = Graph(), dict[Node, Node]()
        for node, entry in state.items():
            try:
                args, kwargs = map_arg((entry.args, entry.kwargs), made.__getitem__)
            except KeyError as missing:
                raise ReinplaceError(f"{node.name} is given {missing}, which is not in front of it") from None
            if entry.op in ("get_attr", "call_module") and entry.target not in self._found:
                raise ReinplaceError(
                    f"{node.name} is a {entry.target}, which the module does not have any more"
                )
            new = graph.create_node(entry.op, entry.target, args, kwargs, name=node.name)
            new.meta.update(entry.meta)
            made[node] = new
        module: GraphModule = _torch.lazy_graph_module(self._found, graph)
        return module
