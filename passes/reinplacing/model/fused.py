"""The cost rule: which scatters and lists are better computed than written in place.

Inductor computes a view scatter element by element, in one kernel with what makes its operand or with what
uses its result. Written in place it is a store of its own, into an operand that must be in memory. So for

    y = x * 2; y = slice_scatter(y, v)          # (a) the operand exists nowhere else
    z = mm(x, w); r = slice_scatter(z, v) + 1   # (b) the result exists nowhere else

being functional costs no copy: one buffer is held either way, and in place the bytes of ``v`` are stored
once more, by one more kernel. For everything else in place is at least as good: the functional form holds
both versions of a buffer, or copies it.

``policy="memory"`` computes only what certainly holds no more: in (a) the operand has no other reader, in
(b) the result has one, and together few enough bytes are read that Inductor does not put the value into
memory after all. ``policy="speed"`` writes in place only where operand and result are in memory anyhow, as
Inductor's own reinplacing does: a value may then be computed several times, or held twice. So it treats an
``index_put``, too, whose operand has other readers. Inside Inductor both are tried where they differ, and the
schedules compared (``inductor/schedule/cost.py``). Nor does it write lists into inputs that are written once
more: what was computed of the old elements would have to be in memory by then.

Operators over lists, as optimizers call them one behind the other, are computed in one kernel where nothing
else looks at what is between them: ``p * a + b`` reads and writes each tensor once, in place twice.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import torch
from torch.fx import Node

from ...graph.alias import uses, viewed
from ...ops import lists
from ...ops.computed import has_code_of, is_factory, is_generated, is_pointwise, needs_memory
from ...ops.schema import traits_of
from ..facts.candidate import Candidate
from ..facts.decision import Decision
from ..facts.model import Model
from ..facts.options import Options
from ..facts.place import Place, Storage

# Inductor puts a value into memory that reads more buffers than this, once it is used twice.
_MOST_READS = 4
_MOST_NODES = 30


def fused(model: Model, options: Options) -> frozenset[int]:
    """Return the candidates that stay functional because that is no copy, and cheaper."""
    if options.policy == "speed":
        scatters = _fused_for_speed(model)
    elif model.target.fuses:
        rule = _Rule(model)
        scatters = {c.index for c in _computed_scatters(model) if rule.is_known_computed(c.node)}
    else:
        return frozenset()  # each node is run by itself
    return frozenset(scatters | {c.index for c in _of_lists(model)})


def differs_for_speed(decision: Decision) -> bool:
    """Return whether ``policy="speed"`` would compute what is written in place, or into a clone."""
    return not _fused_for_speed(decision.model) <= decision.model.fused


def _computed_scatters(model: Model) -> Iterator[Candidate]:
    scatters = (c for c in model.candidates if traits_of(c.node.target).is_computed_scatter)
    return (c for c in scatters if is_generated(c.node))


def _fused_for_speed(model: Model) -> set[int]:
    """Return the scatters whose operand or result Inductor need not put into memory."""
    scatters = {c.node: c for c in _computed_scatters(model)}
    found: dict[Node, bool] = {}
    for node in reversed(scatters):  # what stores an inner one comes behind it
        outer = next((user for user in node.users if user in scatters and user.args[0] is not node), None)
        if outer is None:
            base = _base(model, scatters[node].operand_node)
            found[node] = not (_is_updated(base, node) or (_is_in_memory(base) and _is_in_memory(node)))
        else:
            found[node] = found[outer]
    computed = {scatters[node].index for node, is_computed in found.items() if is_computed}
    others = (c for c in model.candidates if _is_put_into_unstored(model, c) or _is_written_again(c))
    return computed | {c.index for c in others}


def _is_put_into_unstored(model: Model, candidate: Candidate) -> bool:
    """Return whether elements are put into what need not be in memory, though somebody else reads it.

    In place, Inductor puts into memory what was computed of the operand before (``y[i] = y[j] * 2``);
    functional, it computes the operand into the result, and again for who reads it. Of inputs alone: what
    else it is computed of would be held for longer.
    """
    if not traits_of(candidate.node.target).is_index_put:
        return False
    base = _base(model, candidate.operand_node)
    is_read = sum(viewed(user) is not read for user, read in uses(base)) > 1
    return is_read and not _is_in_memory(base) and _is_of_inputs(model, base)


def _is_written_again(candidate: Candidate) -> bool:
    """Return whether an element of a list is not what its operand, an input, holds in the end.

    In place, it is stored for nothing, and Inductor puts into memory what was computed of the old element;
    functional, it is computed where it is used. In a list with a kernel of its own (on GPUs) it is in memory
    anyhow.
    """
    node, operand = candidate.node, candidate.operand_node
    if not lists.is_list(node) or operand.op != "placeholder" or lists.has_blocks(candidate.operand.value):
        return False
    elements = [user for user in node.users if user.args[1] == candidate.slot]
    return not any(_is_updated(operand, e) or _is_wanted_in_memory(e) for e in elements)


def _is_of_inputs(model: Model, node: Node) -> bool:
    """Return whether a value is computed of inputs where it is used, by few operations."""
    pending, seen = [node], set[Node]()
    while pending and len(seen) < _MOST_NODES:
        current = _base(model, pending.pop())
        if current in seen or current.op == "placeholder":
            continue
        if not (is_pointwise(current) or is_factory(current)):
            return False
        seen.add(current)
        pending.extend(filter(_is_plain, current.all_input_nodes))
    return not pending


def _is_updated(base: Node, result: Node) -> bool:
    """Return whether a result is copied back into the input that it is made of."""
    return base.op == "placeholder" and any(
        user.target is torch.ops.aten.copy_.default and user.args[0] is base for user in result.users
    )


def _is_in_memory(node: Node) -> bool:
    """Return whether a value is in memory, whoever uses it."""
    if node.op != "call_function" or not has_code_of(node):
        return True
    return _is_wanted_in_memory(node)


def _is_wanted_in_memory(node: Node) -> bool:
    return any(user.op == "output" or needs_memory(user.target) for user in node.users)


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
    def __init__(self, model: Model) -> None:
        self._model = model
        self._computed: dict[Node, bool] = {}
        self._read_by: dict[Node, set[Node]] = {}
        self._scatters = {c.node: c for c in _computed_scatters(model)}

    def is_computed(self, candidate: Candidate) -> bool:
        """Return whether a scatter is better computed than written."""
        if not self._few_reads(candidate.node):
            return False
        return self._of_unstored(candidate) or self._is_dissolved(candidate.node)

    # -- (a) what the operand is made of ------------------------------------------------------------

    def _of_unstored(self, candidate: Candidate) -> bool:
        """Return whether the operand need not be in memory: no one but this scatter looks at it."""
        root = _base(self._model, candidate.operand_node)
        if not self._is_elementwise(root) or self._outlasts(root, candidate.time):
            return False
        readers = self._readers(root)
        if len(readers) > _MOST_NODES:
            return False
        # Scatters into views of the operand, whose results are what this one writes, belong to it.
        inner = {r for r in readers if r in self._scatters and r is not candidate.node}
        mine = inner | {candidate.node}
        outer = {r for r in mine if not self._readers(r) <= mine}
        return readers <= mine and len(outer) == 1

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

    def _outlasts(self, node: Node, time: int) -> bool:
        """Return whether what a value is computed from is overwritten before it is used, at a time.

        Inductor puts the value into memory before that write.
        """
        made = self._model.order[node]
        read = filter(None, map(self._model.place, self._origins(node)))
        return any(
            bisect_right(w, made) < bisect_left(w, time) for p in read if (w := self._writes.get(p.storage))
        )

    def _origins(self, node: Node) -> Iterator[Node]:
        """Yield the buffers that a value is computed from where it is used, as far as few operations say."""
        pending, seen = [node], set[Node]()
        while pending and len(seen) < _MOST_NODES:
            current = _base(self._model, pending.pop())
            if current in seen:
                continue
            seen.add(current)
            if self._is_elementwise(current) or (_is_plain(current) and traits_of(current.target).is_copy):
                pending.extend(filter(_is_plain, current.all_input_nodes))
            else:
                yield current

    @functools.cached_property
    def _writes(self) -> dict[Storage, list[int]]:
        """When each storage is overwritten, in order, if what may be in place is, scatters left out."""
        found: dict[Storage, list[int]] = {}
        for candidate in self._model.candidates:
            if not candidate.kind.is_copy and candidate.node not in self._scatters:
                found.setdefault(candidate.operand.storage, []).append(candidate.time)
        for storage, writes in self._model.writes.items():
            found.setdefault(storage, []).extend(write.time for write in writes)
        return {storage: sorted(times) for storage, times in found.items()}

    # -- (b) what uses the result --------------------------------------------------------------------

    def _is_dissolved(self, node: Node, depth: int = 0) -> bool:
        """Return whether a result need not be in memory: one elementwise operator uses it."""
        readers = self._readers(node)
        if len(readers) != 1 or depth > _MOST_READS:
            return False
        (reader,) = readers
        return self._is_dissolved(reader, depth + 1) if reader in self._scatters else is_pointwise(reader)

    # -- both ----------------------------------------------------------------------------------------

    def _few_reads(self, node: Node) -> bool:
        """Return whether computing a node reads few buffers, by few operations."""
        pending, seen, reads = [node], set[Node](), set[Node]()
        while pending:
            current = _base(self._model, pending.pop())
            if current in seen:
                continue
            seen.add(current)
            if current is node or self._is_elementwise(current):
                pending.extend(filter(_is_plain, current.all_input_nodes))
            else:
                reads.add(current)
            if len(seen) > _MOST_NODES or len(reads) > _MOST_READS:
                return False
        return True

    def _readers(self, node: Node) -> set[Node]:
        """Return what reads a node, through views."""
        if node not in self._read_by:
            readers = ((user, read) for user, read in uses(node) if viewed(user) is not read)
            self._read_by[node] = {user for user, read in readers if not _takes_only_shape(user, read)}
        return self._read_by[node]


def _base(model: Model, node: Node) -> Node:
    """Return what a node is a view of, as far as each is of one value."""
    while (source := viewed(node)) is not None and isinstance(model.values.get(source), Place):
        node = source
    return node


def _takes_only_shape(user: Node, read: Node) -> bool:
    """Return whether a value is what a functional ``copy`` would overwrite: nobody looks at its elements."""
    return (
        user.target is torch.ops.aten.copy.default and user.args[:1] == (read,) and read not in user.args[1:]
    )


def _is_plain(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)
