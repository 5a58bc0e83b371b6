"""Lists of which Inductor would make a kernel that races: their elements are computed one by one.

The blocks of a kernel for a list run in any order, so no element may read what is written for another one.
Inductor takes the elements for independent, which they are when it makes the kernel, and fuses with it what
belongs to one of them, without a look at the others (``ForeachKernelSchedulerNode``):

* a producer whose results two elements read is fused with one of the two;
* a consumer that overwrites what another element reads is fused with the element that it stores;
* two lists of equal length are fused although an element of the second reads another one of the first.

So ``_foreach_add_([a, b], c); _foreach_add_([b, a], [a * 2, b * 2])`` is wrong with Inductor's own passes,
too. An optimizer's step, in which the elements of a parameter meet only each other and what no element
writes, stays as it is.

A list of one element gains nothing by such a kernel, and some Inductor cannot compile: it is taken apart,
too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, Node

from ...graph.emit import Emitter
from ...memory.geometry import Geometry
from ...memory.region import Region
from ..defects import defended
from .element_op import element_op, emit_element
from .kernel_groups import KernelGroups, is_kernel

_MOST = 64  # what a value may be computed from before it is taken to meet everything
Met = dict[Node | None, None]  # groups, or operands; None stands for all


def take_apart(graph: Graph, also: Iterable[Node] = ()) -> int:
    """Compute the elements of lists one by one where their kernel would race, in a functional graph.

    Args:
        graph: the graph.
        also: lists that are taken apart anyway.

    Returns:
        How many lists were.
    """
    count, found = 0, list(also)
    while found := found or racing(graph):
        for made_by in found:
            _take_apart(made_by)
        count += len(found)
        found = []
    return count


def racing(graph: Graph) -> list[Node]:
    """Return the lists that have to be taken apart, and can be.

    Either an element may meet, in their kernel, what is written for another one, or they have but one.
    """
    lists = [node for node in graph.nodes if is_kernel(node) and element_op(node.target) is not None]
    if not lists:
        return []
    groups = KernelGroups(graph)
    found = dict[Node, None]()
    if defended("list-of-one"):
        found.update(dict.fromkeys(node for node in lists if len(node.meta["val"]) == 1))
    if defended("racing-list"):
        found.update(_Races(groups).found)
    return [node for node in lists if node in found]


def _take_apart(made_by: Node) -> None:
    emitter = Emitter(made_by.graph, None)
    for item in list(made_by.users):
        index: Any = item.args[1]
        element = emit_element(emitter, made_by, index)
        element.meta["val"] = made_by.meta["val"][index]
        item.replace_all_uses_with(element)
        made_by.graph.erase_node(item)
    made_by.graph.erase_node(made_by)


class _Access(NamedTuple):
    """Bytes of a buffer that a group reads or writes."""

    region: Region
    group: Node
    is_write: bool


class _Races:
    """Looks for lists that race.

    Args:
        groups: what may be in one kernel.

    Attributes:
        found: the lists that race.
    """

    def __init__(self, groups: KernelGroups) -> None:
        self.found: dict[Node, None] = {}
        self._groups = groups
        # Of each group with elements, which element of each list is in it.
        self._places: dict[Node, dict[tuple[Node, torch.device], int]] = {}
        self._note_elements()
        written = {groups.source(w) for n in groups.writes for w in groups.writes[n] if self._holds(n)}
        self._accesses: dict[Node, list[_Access]] = {source: [] for source in written}
        self._note_reads()
        self._note_writes()

    def _holds(self, node: Node) -> bool:
        return self._groups.of(node) in self._places

    def _note_elements(self) -> None:
        """Note two elements of one list in a group: one may read what the other's blocks write."""
        for node, element in self._groups.element.items():
            if element.length == 1:
                continue
            places = self._places.setdefault(self._groups.of(node), {})
            if places.setdefault((element.made_by, element.device), element.place) != element.place:
                self.found[element.made_by] = None

    def _note_reads(self) -> None:
        """Note what an element reads of another group: another element's blocks may write it.

        What is in no group with an element has a kernel of its own, or is computed again by whoever reads
        it: that one reads what it is computed from.
        """
        groups_of: dict[Node, Met] = {}
        reads_of: dict[Node, Met] = {}
        for node in self._groups.inputs:
            met, reads = Met(), Met()
            for operand in self._groups.inputs[node]:
                source = self._groups.source(operand)
                if self._holds(source):
                    met[self._groups.of(source)] = None
                met.update(groups_of.get(source, {}))
                reads.update({operand: None} if source in self._accesses else {})
                reads.update(reads_of.get(source, {}))
            if self._holds(node):
                self._meet_all(met, self._groups.of(node))
                self._read_all(reads, self._groups.of(node))
            else:
                groups_of[node], reads_of[node] = _bounded(met), _bounded(reads)

    def _meet_all(self, met: Met, mine: Node) -> None:
        for group in met:
            self._meet(group, mine)

    def _read_all(self, reads: Met, mine: Node) -> None:
        for operand in reads:
            if operand is None:
                self._meet(None, mine)
            else:
                self._access(operand, mine, is_write=False)

    def _access(self, operand: Node, group: Node, *, is_write: bool) -> None:
        region = Region.of(operand.meta["val"])
        self._accesses[self._groups.source(operand)].append(_Access(region, group, is_write))

    def _note_writes(self) -> None:
        """Note what an element's blocks overwrite: another element's may read it, or write it, too."""
        for node, operands in self._groups.writes.items():
            for operand in operands if self._holds(node) else ():
                self._access(operand, self._groups.of(node), is_write=True)
        geometry = Geometry()
        for accesses in self._accesses.values():
            if len({access.group for access in accesses}) > 1:
                for one, two in _pairs(geometry, accesses):
                    self._meet(one.group, two.group)

    def _meet(self, one: Node | None, two: Node) -> None:
        """Note the lists of which two groups hold different elements; of one without a name, all."""
        held = self._places[two]
        other = self._places[one] if one is not None else dict.fromkeys(held, -1)
        few, many = sorted((held, other), key=len)
        for made_by, place in few.items():
            if many.get(made_by, place) != place:
                self.found[made_by[0]] = None


def _bounded(met: Met) -> Met:
    return met if len(met) <= _MOST else {None: None}


def _pairs(geometry: Geometry, accesses: list[_Access]) -> Iterable[tuple[_Access, _Access]]:
    """Yield pairs of accesses to the same bytes, by two groups, of which one writes at least.

    Parts of one buffer are many, and few of them meet: only those whose intervals of bytes do are compared.
    """
    static = [a for a in accesses if a.region.static]
    others = [a for a in accesses if not a.region.static]
    static.sort(key=lambda a: a.region.offset)
    for i, one in enumerate(accesses := [*others, *static]):
        end = one.region.offset + geometry.axes(one.region).span if one.region.static else None
        for two in accesses[i + 1 :]:
            if end is not None and two.region.offset >= end:
                break
            if one.group is not two.group and (one.is_write or two.is_write):
                if geometry.overlap(one.region, two.region) is not False:
                    yield one, two
