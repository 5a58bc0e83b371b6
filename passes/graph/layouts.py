"""What is known of where a value begins and how it is laid out, and what is asked of that: the records.

``find_layouts.py`` finds it out, once for a graph and all that it calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import torch
from torch.fx import Graph, GraphModule, Node

from ..memory.region import Size, as_size, is_multiple
from ..ops.beginning import EXACT
from .spread import backward


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """What is known of one value, and asked of it.

    Args:
        untold: whether its strides may be others than its fake tensor says.
        guessed: whether those of dimensions of one may be.
        named: the largest item of it that is named by an offset into its storage, in bytes; 0 for none.
        viewed: what its beginning must be a multiple of, in bytes: larger than any offset where the offset
            itself is asked for, 1 where only strides are, 0 where nothing is.
    """

    untold: bool = False
    guessed: bool = False
    named: int = 0
    viewed: int = 0

    @property
    def is_located(self) -> bool:
        """Whether anybody goes by the very offset at which the value begins."""
        return self.named > 0 or self.viewed == EXACT

    def may_move(self, nbytes: Size) -> bool:
        """Return whether the value may begin so many bytes elsewhere, offsets being moved along."""
        if self.named and not isinstance(nbytes, int):
            return False  # offsets are moved by a constant
        return is_multiple(nbytes, self.named) and is_multiple(nbytes, self.viewed)


_NOTHING = Layout()  # asked of most values


@dataclasses.dataclass(frozen=True, slots=True)
class Layouts:
    """What is known of the values of one graph.

    Args:
        values: by the names of their nodes, which those of a copy of the graph have, too; all others are as
            told, and nothing is asked of them.
        staying: the nodes that stay functional, by name: their results, or what offsets name, are not told.
        has_names: whether bytes are named by an offset.
        unit: what all strides must be multiples of, in bytes; 0 where nobody asks.
    """

    values: Mapping[str, Layout]
    staying: frozenset[str]
    has_names: bool
    unit: int

    def of(self, node: Node, item: int | None = None) -> Layout:
        """Return what is known of a node's value, or of one of a list, asked by those who take it."""
        if item is None:
            return self.values.get(node.name, _NOTHING)
        taken = [self.of(user) for user in node.users if user.args[1] == item] or [_NOTHING]
        named, viewed = max(one.named for one in taken), max(one.viewed for one in taken)
        return dataclasses.replace(self.of(node), named=named, viewed=viewed)

    def may_copy(self, node: Node, value: torch.Tensor) -> bool:
        """Return whether a copy of a value, which begins at offset 0, may be used for a node's value."""
        return self.of(node).may_move(as_size(value.storage_offset()) * value.element_size())


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """What is known of the values of a graph and of all that it calls.

    Args:
        graphs: of each graph, by its module; ``None`` has none.
        has_beginnings: whether anybody, in any of them, goes by where a value begins.
    """

    graphs: Mapping[GraphModule | None, Layouts]
    has_beginnings: bool

    def staying(self, graph: Graph) -> frozenset[Node]:
        """Return the nodes of one of the graphs, or of a copy of it, that stay functional."""
        names = self.graphs[graph.owning_module].staying
        return frozenset(n for n in graph.nodes if n.name in names) if names else frozenset()

    def of(self, graph: Graph, pinning: Iterable[Node] = ()) -> Layouts:
        """Return what is known of the values of one of the graphs, or of a copy of it.

        Args:
            graph: the graph.
            pinning: nodes whose operands must begin where the graph says, if anybody goes by that.
        """
        known = self.graphs[graph.owning_module]
        exact = backward(dict.fromkeys(pinning, EXACT)) if self.has_beginnings else ()
        pinned = {n.name: dataclasses.replace(known.of(n), viewed=EXACT) for n in exact}
        return dataclasses.replace(known, values={**known.values, **pinned}) if pinned else known
