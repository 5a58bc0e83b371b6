"""One rule: the places where it may rewrite a graph, what it did there, and why not elsewhere."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from torch.fx import Graph, GraphModule, Node

from ..ops.schema import schema_of


class Refusal(NamedTuple):
    """A place where a rule would fit and is not legal, or cannot be shown to be.

    Attributes:
        rule: the rule.
        node: the node, in the graph as it is now.
        reason: why it stays.
    """

    rule: str
    node: Node
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Applied:
    """What a rule did to a graph.

    Args:
        rule: the rule.
        rewritten: the names of the nodes that it replaced or erased, in the order in which it did.
        refused: the places that it left as they are.
    """

    rule: str
    rewritten: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()


class GraphPass(Protocol):
    """A named rewrite of a graph that keeps the contract."""

    @property
    def name(self) -> str:
        """How it is found."""

    def apply(self, gm: GraphModule) -> Applied:
        """Rewrite the graph of a module wherever that is legal."""


Around = Callable[[Graph, str], contextlib.AbstractContextManager[None]]
_around: contextvars.ContextVar[Around | None] = contextvars.ContextVar("around", default=None)


@contextlib.contextmanager
def around_each(around: Around) -> Iterator[None]:
    """Have each rule that is applied inside the block applied inside ``around(graph, name)``."""
    token = _around.set(around)
    try:
        yield
    finally:
        _around.reset(token)


Place = tuple[str, Node | None, str]  # the name of a node; the node and why it stays, where it does
Places = Iterator[Place]


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the post-grad or joint stage.

    Args:
        name: how it is found.
        rewrite: rewrites a graph and yields each place, when it is done with it.
        hide: writes a node that stays in a form, equal to the last bit, in which Inductor's rule of the same
            kind does not know it. ``None`` where Inductor's rule is switched off, or does no harm.
    """

    name: str
    rewrite: Callable[[Graph], Places]
    hide: Callable[[Node], None] | None = None

    def apply(self, gm: GraphModule) -> Applied:
        """Rewrite the graph of a module wherever that is legal; subgraphs stay as they are."""
        applied = self.on_graph(gm.graph)
        if applied.rewritten:
            gm.recompile()
        return applied

    def on_graph(self, graph: Graph) -> Applied:
        """Rewrite a graph wherever that is legal."""
        around = _around.get()
        with contextlib.nullcontext() if around is None else around(graph, self.name):
            return self._on_graph(graph)

    def _on_graph(self, graph: Graph) -> Applied:
        places = list(self.rewrite(graph))
        rewritten = tuple(name for name, left, _ in places if left is None)
        refused = tuple(Refusal(self.name, left, why) for _, left, why in places if left is not None)
        return Applied(self.name, rewritten, refused)

    def stand_in(self, graph: Graph) -> Applied:
        """Rewrite a graph, and leave nothing there for Inductor's rule of the same kind."""
        applied = self.on_graph(graph)
        for refusal in applied.refused if self.hide is not None else ():
            self.hide(refusal.node)  # type: ignore[misc]
        return applied


def by_name(node: Node, name: str) -> None:
    """Have the last argument that a node is given by position given by its name, if that is its name.

    Patterns of Inductor look for arguments where they usually stand; to torch it is the same call.
    """
    names = schema_of(node.target).names
    if node.args and names[len(node.args) - 1] == name:
        node.args, node.kwargs = node.args[:-1], {**node.kwargs, name: node.args[-1]}
