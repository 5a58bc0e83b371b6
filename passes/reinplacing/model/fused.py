"""The cost rule: which view scatters and lists are better computed than written in place.

Inductor computes a view scatter element by element, in one kernel with what makes its operand or with what
uses its result. Written in place it is a store of its own, into an operand that must be in memory. So for

    y = x * 2; y = slice_scatter(y, v)          # (a) the operand exists nowhere else
    z = mm(x, w); r = slice_scatter(z, v) + 1   # (b) the result exists nowhere else

being functional costs no copy: one buffer is held either way, and in place the bytes of ``v`` are stored
once more, by one more kernel. For everything else in place is at least as good: the functional form holds
both versions of a buffer, or copies it.

``policy="memory"`` computes only what certainly holds no more: in (a) nobody else reads the operand, but for
what is computed of it to be stored, in (b) the result has one reader, and together few enough bytes are read
that Inductor does not put the value into memory after all. Beside these it computes

    x[0] = a; x[1] = b                          # (c) stores into a small buffer, one behind the other

in one kernel: a few kilobytes are moved while another one is started. ``policy="speed"`` computes wherever
the operand or the result need not be in memory, which is where Inductor itself does: a value may then be
computed several times, or held twice.

Operators over lists, as optimizers call them one behind the other, are computed in one kernel where nothing
else looks at what is between them: ``p * a + b`` reads and writes each tensor once, in place twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node

from ...graph.alias import uses, viewed
from ...ops import lists
from ...ops.computed import is_factory, is_pointwise
from ...ops.schema import argument, traits_of
from ..facts import price
from ..facts.candidate import Candidate
from ..facts.model import Model
from ..facts.options import Options
from ..facts.place import Place

# Inductor puts a value into memory that reads more buffers than this, once it is used twice.
_MOST_READS = 4
_MOST_NODES = 30


def fused(model: Model, options: Options) -> frozenset[int]:
    """Return the candidates that stay functional because that is no copy, and cheaper."""
    if not (model.target.fuses or options.policy == "speed"):
        return frozenset()  # each node is run by itself
    rule = _Rule(model, options.policy == "speed")
    scatters = [c for c in model.candidates if _is_computed_scatter(c)]
    computed = {c.index for c in scatters if rule.is_known_computed(c.node)}
    joined = rule.joined([c for c in scatters if c.index not in computed])
    return frozenset(computed | joined | {c.index for c in _of_lists(model)})


def _is_computed_scatter(candidate: Candidate) -> bool:
    return traits_of(candidate.node.target).is_computed_scatter


def _of_lists(model: Model) -> Iterator[Candidate]:
    """Yield the elements of lists that are computed in one kernel with what uses or makes them.

    Inductor puts what an operator over lists computes into memory unless only such operators use it. Written
    in place it is a kernel of its own; so are what it would be given in place, where that is not in memory.
    """
    is_computed: dict[Node, bool] = {}
    unstored: set[Node] = set()
    for candidate in model.candidates:  # in graph order
        node = candidate.node
        if not lists.is_list(node):
            continue
        if node not in is_computed:
            if lists.is_unstored(node):
                unstored.add(node)
            is_computed[node] = node in unstored or not unstored.isdisjoint(map(lists.maker, node.args[0]))  # type: ignore[arg-type]
        if is_computed[node]:
            yield candidate


class _Rule:
    def __init__(self, model: Model, speed: bool) -> None:
        self._model = model
        self._speed = speed
        self._computed: dict[Node, bool] = {}
        self._read_by: dict[Node, set[Node]] = {}
        self._scatters = {c.node: c for c in model.candidates if _is_computed_scatter(c)}

    def is_computed(self, candidate: Candidate) -> bool:
        """Return whether a scatter is better computed than written."""
        if not self._few_reads(candidate.node):
            return False
        return self._of_unstored(candidate) or self._is_dissolved(candidate.node)

    # -- (a) what the operand is made of ------------------------------------------------------------

    def _of_unstored(self, candidate: Candidate) -> bool:
        """Return whether the operand need not be in memory: no one but this scatter looks at it."""
        root = self._base(candidate.operand_node)
        if not self._is_elementwise(root):
            return False
        if self._speed:
            return True
        readers = self._readers(root)
        if len(readers) > _MOST_NODES or self._is_read_again(root, candidate):
            return False
        # Scatters into views of the operand, whose results are what another one writes, belong to that.
        ends = (candidate.node, *(r for r in readers if r in self._scatters))
        return any(candidate.node in (self._leading_to(root, {end}) or ()) for end in ends)

    def _is_read_again(self, root: Node, store: Candidate) -> bool:
        """Return whether what a scatter stored is read for others than the elements that it is stored in.

        What those read would be computed once more for each of them, and so on, scatter by scatter.
        """
        written = self._scatters[root].writes if root in self._scatters else ()
        for user, read in uses(root) if written else ():
            place = self._model.place(read)
            if user in self._scatters or viewed(user) is read or place is None:
                continue
            if self._is_stored_in(read, store) or _takes_only_shape(user, read):
                continue
            if any(self._model.geometry.overlap(place.region, w) is not False for w in written):
                return True
        return False

    def _leading_to(self, root: Node, stores: set[Node]) -> set[Node] | None:
        """Return what is computed of a value on the way to scatters; ``None`` where others read it."""
        pending, mine = [root], set(stores)
        while pending:
            for reader in self._readers(pending.pop()) - mine:
                if len(mine) == _MOST_NODES or not (reader in self._scatters or is_pointwise(reader)):
                    return None
                mine.add(reader)
                pending.append(reader)
        return mine if all(self._readers(node) for node in mine - stores) else None

    # -- (c) several stores ------------------------------------------------------------------------

    def joined(self, candidates: list[Candidate]) -> set[int]:
        """Return the scatters, of those that write one buffer one behind the other, that one kernel computes.

        Only where the last of them is what ends in the buffer, or begins what does, and where each element is
        computed of what it was: else one buffer more is held.
        """
        found: set[int] = set()
        begun: set[Node] = set()
        for last in reversed(candidates):
            if last.index in found or not self._is_end(last, begun):
                continue
            mine, stores = {last.node}, [last]
            while len(stores) < _MOST_NODES:
                before = self._scatters.get(self._base(stores[-1].operand_node))
                more = None if before is None else self._leading_to(before.node, mine)
                if before is None or more is None or before.index in found:
                    break
                if self._is_read_elsewhere(before.node, stores[-1], more):
                    break
                mine = more | {before.node}
                stores.append(before)
            base = self._base(stores[-1].operand_node)
            kernels = sum(not self._is_stored_anyway(c, mine) for c in stores)
            is_less = price.of_region(self._model, last.operand.region) <= (kernels - 1) * price.LAUNCH
            if not is_less or self._is_written(base):
                continue
            inlined = [(store, self._inlined(store.node)) for store in stores]
            if not any(users is None or self._is_read_elsewhere(base, s, users) for s, users in inlined):
                for inner in sorted(self._readers(base), key=self._model.order.__getitem__, reverse=True):
                    if inner in self._scatters and self._readers(inner) <= mine:
                        mine.add(inner)
                found.update(c.index for node, c in self._scatters.items() if node in mine)
                begun.add(base)
        return found

    def _is_written(self, base: Node) -> bool:
        """Return whether something else writes an input before: Inductor fuses little with a second write."""
        place = self._model.place(base)
        maker = self._model.made_by.get(place.storage) if place is not None else None
        return (
            maker is not None
            and maker.node not in self._scatters
            and self._model.trees[maker.result].is_input
        )

    def _is_read_elsewhere(self, node: Node, store: Candidate, users: set[Node]) -> bool:
        """Return whether users compute more of a value, for a store, than of each element what it becomes."""
        return any(
            user in users and not self._is_stored_in(read, store)
            for user, read in uses(node)
            if user not in self._scatters and not _takes_only_shape(user, read)
        )

    def _is_stored_in(self, read: Node, store: Candidate) -> bool:
        place, contains = self._model.place(read), self._model.geometry.contains
        return place is not None and any(contains(written, place.region) for written in store.writes)

    def _is_stored_anyway(self, candidate: Candidate, mine: set[Node]) -> bool:
        """Return whether what is stored is computed for others as well, whose kernel may store it."""
        source: Any = candidate.node
        while source in self._scatters or traits_of(source.target).is_copy:
            source = self._base(argument(source, "src") or source.args[0])
        return self._is_elementwise(source) and self._leading_to(source, mine) is None

    def _is_end(self, candidate: Candidate, begun: set[Node]) -> bool:
        root = self._model.trees[candidate.result]
        if not root.is_input or candidate.node in begun:
            return True
        return any(write.source.storage is candidate.result for write in self._model.writes.get(root, ()))

    def _is_elementwise(self, node: Node) -> bool:
        """Return whether Inductor computes a node where it is used."""
        if not _is_plain(node):
            return False
        if node in self._scatters:
            return self.is_known_computed(node)
        return is_factory(node) or is_pointwise(node)

    def is_known_computed(self, node: Node) -> bool:
        """Return whether an earlier scatter is computed."""
        if node not in self._computed:
            self._computed[node] = False
            self._computed[node] = self.is_computed(self._scatters[node])
        return self._computed[node]

    # -- (b) what uses the result --------------------------------------------------------------------

    def _is_dissolved(self, node: Node, depth: int = 0) -> bool:
        """Return whether a result need not be in memory: it is used elementwise, here by only one node."""
        readers = self._readers(node)
        if not readers or depth > _MOST_READS or (len(readers) > 1 and not self._speed):
            return False
        for reader in readers:
            if reader in self._scatters:
                if not self._is_dissolved(reader, depth + 1):
                    return False
            elif not (is_pointwise(reader) or self._is_moved(node, reader)):
                return False
        return True

    def _is_moved(self, node: Node, reader: Node) -> bool:
        """Return whether a value is copied into an input whose memory it could not be in."""
        place = self._model.place(node)
        root = None if place is None else self._model.trees[place.storage]
        return any(
            w.node is reader for s, found in self._model.writes.items() if s is not root for w in found
        )

    # -- both ----------------------------------------------------------------------------------------

    def _few_reads(self, node: Node) -> bool:
        """Return whether computing a node reads few buffers, by few operations."""
        return self._speed or self._inlined(node) is not None

    def _inlined(self, node: Node) -> set[Node] | None:
        """Return what is computed on the way to a node; ``None`` where that is much or of many buffers."""
        pending, seen, reads = [node], set[Node](), set[Node]()
        while pending:
            current = self._base(pending.pop())
            if current in seen:
                continue
            seen.add(current)
            if current is node or self._is_elementwise(current):
                pending.extend(filter(_is_plain, current.all_input_nodes))
            else:
                reads.add(current)
            if len(seen) > _MOST_NODES or len(reads) > _MOST_READS:
                return None
        return seen

    def _base(self, node: Node) -> Node:
        """Return what a node is a view of, as far as each is of one value."""
        while (source := viewed(node)) is not None and isinstance(self._model.values.get(source), Place):
            node = source
        return node

    def _readers(self, node: Node) -> set[Node]:
        """Return what reads a node, through views."""
        if node not in self._read_by:
            readers = ((user, read) for user, read in uses(node) if viewed(user) is not read)
            self._read_by[node] = {user for user, read in readers if not _takes_only_shape(user, read)}
        return self._read_by[node]


def _takes_only_shape(user: Node, read: Node) -> bool:
    """Return whether a value is what a functional ``copy`` would overwrite: nobody looks at its elements."""
    return (
        user.target is torch.ops.aten.copy.default and user.args[:1] == (read,) and read not in user.args[1:]
    )


def _is_plain(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)
