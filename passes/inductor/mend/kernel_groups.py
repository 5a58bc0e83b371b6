"""Values that Inductor may compute in one kernel, where elements of lists are among them.

On GPUs Inductor computes a list in one kernel, each element in blocks of its own. It fuses a producer or a
consumer with one element, and two lists of equal length element by element. All that may so come together, if
only by what it shares, is one group here: more than Inductor fuses, never less.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, Node

from ...graph.alias import bases, uses, written
from ...memory.region import Size, as_size
from ...ops import lists
from ...ops.in_place_form import in_place_form
from ...ops.schema import schema_of, tensors
from ..lowering import is_computed, is_constant, is_in_a_kernel

Shape = tuple[torch.device, Size]  # the device and how many elements


class Element(NamedTuple):
    """An element of a list that Inductor makes a kernel of.

    Args:
        made_by: the operator over lists.
        device: its device: the elements on each are a kernel of their own.
        place: which of these elements it is.
        length: how many there are.
    """

    made_by: Node
    device: torch.device
    place: int
    length: int


def is_kernel(node: Node) -> bool:
    """Return whether a node is a list of which Inductor may make a kernel."""
    value = node.meta.get("val")
    is_on_gpu = isinstance(value, list | tuple) and any(v.is_cuda for v in tensors(value))
    return is_on_gpu and lists.is_list(node)


def elements_of(made_by: Node) -> dict[int, Element]:
    """Return the elements of a list that are computed in blocks of a kernel, by their index."""
    found: dict[torch.device, list[int]] = {}
    for index, value in enumerate(made_by.meta["val"]):
        if lists.has_blocks(value):
            found.setdefault(value.device, []).append(index)
    return {
        index: Element(made_by, device, place, len(indices))
        for device, indices in found.items()
        for place, index in enumerate(indices)
    }


class KernelGroups:
    """The groups of a graph, and what is read and written between them.

    Args:
        graph: a functional graph.

    Attributes:
        element: the elements of lists that are computed in blocks of a kernel.
        inputs: what Inductor computes, in order, with what each reads, without views that go before.
        writes: what each writes, or may write if it is written in place.
        roots: what every node is a view of.
    """

    def __init__(self, graph: Graph) -> None:
        self._parent: dict[Node, Node] = {}
        self._sharing: dict[tuple[Any, ...], Node] = {}
        self.element: dict[Node, Element] = {}
        self.roots = bases(graph)
        self.inputs: dict[Node, list[Node]] = {}
        self.writes: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            if is_kernel(node):
                self._add_list(node)
            elif is_in_a_kernel(node):
                self._add(node, list(_read(node)))

    def of(self, node: Node) -> Node:
        """Return the group that a value is in, as one of its nodes."""
        path = []
        while (parent := self._parent.get(node, node)) is not node:
            path.append(node)
            node = parent
        self._parent.update(dict.fromkeys(path, node))
        return node

    def source(self, operand: Node) -> Node:
        """Return whose memory an operand is in: of one of several results it is their operator."""
        root = self.roots[operand]
        if root.target is operator.getitem and lists.maker(root) is None:
            return root.all_input_nodes[0]
        return root

    def _add_list(self, made_by: Node) -> None:
        elements = elements_of(made_by)
        first: dict[int, Node] = {}
        for item in made_by.users:
            index: Any = item.args[1]
            if index in elements:
                self.element[item] = elements[index]
            self._add(item, list(lists.inputs_of(item)))
            self._join(first.setdefault(index, item), item)

    def _add(self, node: Node, inputs: list[Node]) -> None:
        self.inputs[node] = inputs = [n for n in inputs if isinstance(n.meta.get("val"), torch.Tensor)]
        self.writes[node] = list(_may_write(node))
        element = self.element.get(node)
        # Two lists are fused element by element; an element and anything else only where one makes what
        # the other reads.
        beside = (element.place, element.length) if element else ()
        for source in {self.source(n): None for n in inputs}:
            if _is_made_again(source):
                continue
            for shape in self._computed_as(node):
                if source in self.inputs and shape in _shapes(source):
                    self._join(source, node)
                self._join(self._sharing.setdefault((source, shape, *beside), node), node)

    def _computed_as(self, node: Node) -> set[Shape]:
        """Return how many elements a node may be computed as: what is stored in place has those of a part."""
        is_stored = self.writes[node] and node not in self.element
        operands = self.inputs[node] if is_stored else []
        return {_shapes(node)[0], *(shape for n in operands for shape in _shapes(n))}

    def _join(self, one: Node, two: Node) -> None:
        one, two = self.of(one), self.of(two)
        if one is not two:
            self._parent[two] = one


def _read(node: Node) -> list[Node]:
    """Return what a node reads; a copy only writes its first operand."""
    return node.all_input_nodes[1:] if node.target is torch.ops.aten.copy_.default else node.all_input_nodes


def _may_write(node: Node) -> Iterator[Node]:
    """Yield what a node writes, or may be made to write."""
    made_by = lists.maker(node)
    if made_by is not None:
        own, index = made_by.args[0], node.args[1]
        found: Any = [own[index]] if isinstance(own, list | tuple) else []  # type: ignore[index]
    else:
        is_written = schema_of(node.target).is_scatter or in_place_form(node.target) is not None
        found = written(node) or ([node.args[0]] if is_written else [])
    yield from (n for n in found if isinstance(n, Node))


def _is_made_again(node: Node) -> bool:
    """Return whether a value is made of nothing by everybody who uses it: it is no memory to share."""
    return is_constant(node) and all(is_computed(user) for user, _ in uses(node))


def _shapes(node: Node) -> list[Shape]:
    return [(value.device, as_size(value.numel())) for value in tensors(node.meta["val"])]
