"""A naive, independent execution of a functional graph with a chosen set of candidates in place.

It shares no analysis with the pass: each candidate in the set really writes into its operand's tensor,
every other one copies first, and the contract (``verify/equivalence.py``) says whether the choice was legal.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from ... import _torch
from ..collectives import InFlight, is_imitated, is_started
from ..equivalence import Effects, difference, effects
from ..execution import Manner, address, attributes, cloned, leaves
from ..seeding import seeded, undrawn
from .apart import output_nodes, unshared
from .form_run import Refused, called
from .forms import form_of
from .same_bytes import copy_of, equal, overlap, same_bytes, same_strides
from .slots import (
    INDEX_PUTS,
    SCATTERS,
    copy_bytes,
    is_plain_clone,
    nbytes,
    others,
    parts,
    read_arguments,
    result_of,
    slots,
)
from .variation import COARSE, make_uneven
from .wrapper_run import WrapperCall

aten: Any = torch.ops.aten


class Illegal(Exception):
    """A choice that no rewrite may make; ``node`` is the first node that shows it, ``None`` for the end."""

    def __init__(self, node: Node | None = None) -> None:
        super().__init__()
        self.node = node


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One thing that may be copied or not.

    Args:
        node: the node.
        slot: an argument, an element ``(argument, i)``, or a base's number: a candidate; or
            ``("copy of", i)``: the node's i-th other operand, copied to make room for a write; or
            ``("part", name)``: a view of a base, written in a copy that is put back after the call.
        nbytes: bytes of the copy.
    """

    node: Node
    slot: Any
    nbytes: int


class Simulation:
    """A functional graph with its inputs, run once as written and then with any choices.

    Args:
        gm: the functional graph.
        inputs: real tensors, one for each placeholder.
        uneven: what is added to the first element of what is computed anew, and with other numbers to all
            further ones, here as there: an operator that fills with one number shows less than one that does
            not. ``None``: nothing.

    Raises:
        RunError: the functional graph itself does not run on these inputs.
    """

    def __init__(self, gm: GraphModule, inputs: Sequence[Any], *, uneven: int | None = None) -> None:
        self.gm = gm
        self.inputs: list[Any] = list(inputs)
        self.uneven = uneven
        self.given: dict[tuple[Node, Node], torch.Tensor] = {}
        self.spec: dict[Node, Any] = {}
        with undrawn():
            self.expected: Effects = effects(gm, inputs, self._note, Manner(seeded))
        self.candidates: list[Choice] = [c for node in gm.graph.nodes for c in self._candidates(node)]
        self.operands: list[Choice] = list(self._operand_copies())
        self.conversions: int = sum(
            nbytes(self.spec[n])
            for n in gm.graph.find_nodes(op="call_function", target=aten.clone.default)
            if not is_plain_clone(n)
        )

    def _note(self, node: Node, value: Any) -> None:
        if self.uneven is not None:
            make_uneven(node, value, self.uneven)
        self.spec[node] = value
        if _is_opaque(node):
            read = {n: self.spec[n] for n in node.all_input_nodes}
            self.given.update(((node, n), v.clone()) for n, v in read.items() if isinstance(v, torch.Tensor))

    def _candidates(self, node: Node) -> Iterator[Choice]:
        for slot, operand in slots(node):
            yield Choice(node, slot, copy_bytes(node, slot, self.spec[operand]))

    def _operand_copies(self) -> Iterator[Choice]:
        """Yield the other operands that could lie in a buffer that their node writes."""
        owner: dict[int, int] = {}

        def root(key: int) -> int:
            while key in owner:
                key = owner[key]
            return key

        for node in self.gm.graph.nodes:
            written = [root(address(self.spec[operand])) for _, operand in slots(node)]
            for i, operand in enumerate(others(node) if written else ()):
                value = self.spec[operand]
                if root(address(value)) in written:
                    yield Choice(node, ("copy of", i), nbytes(value))
            read = {root(address(self.spec[operand])) for operand in others(node)}
            for (slot, operand), key in zip(slots(node), written, strict=True):
                for prefix, size in parts(node, slot, self.spec[operand]) if key in read else ():
                    yield Choice(node, ("part", prefix), size)
            for (slot, operand), key in zip(slots(node), written, strict=True):
                result = result_of(self.spec[node], node, slot)
                if address(result) != key:
                    owner[address(result)] = root(address(self.spec[operand]))

    def cost(self, copied: frozenset[Choice]) -> int:
        """Return the bytes copied when exactly ``copied`` is copied; clones that convert always are.

        Raises:
            Illegal: a node computes something else than as written, or the contract is broken at the end.
        """
        run = _Run(self, copied)
        actual = run.effects()
        shares = unshared(self.expected, actual, output_nodes(self.gm))
        if shares is None or difference(self.expected, shares[1]) is not None:
            raise Illegal
        return sum(c.nbytes for c in copied) + self.conversions + run.written_back + shares[0]


def _is_kernel(node: Node) -> bool:
    """Return whether a node is not torch's own."""
    own = ("aten.", "prims.", "<built-in function getitem")
    return node.op == "call_function" and not str(node.target).startswith(own)


def _is_opaque(node: Node) -> bool:
    """Return whether a node may look at all it is given; a collective holds anything until its wait."""
    return node.target in COARSE or (_is_kernel(node) and not is_imitated(node.target))


class _Run:
    """One execution with one set of copies."""

    def __init__(self, simulation: Simulation, copied: frozenset[Choice]) -> None:
        self.simulation = simulation
        self.gm = simulation.gm
        self.spec = simulation.spec
        self.inputs = simulation.inputs
        self.names = [name for name, _ in simulation.expected.inputs]
        self.chosen = copied
        self.copied = {(c.node, c.slot) for c in copied}
        self.env: dict[Node, Any] = {}
        self.written_back = 0
        self.kept: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.in_flight = InFlight()
        self.written: set[int] = set()

    def effects(self) -> Effects:
        own = attributes(self.gm)
        copies = cloned([*self.inputs, *own.values()])
        attrs = dict(zip(own, copies[len(self.inputs) :], strict=True))
        given, outputs = iter(copies), None
        written = self.written = {
            address(self.spec[n.args[0]]) for n in self.gm.graph.nodes if n.target is aten.copy_.default
        }
        originals = [v for _, v in self.simulation.expected.inputs]
        self.kept = [
            (mine, theirs)
            for mine, theirs in zip(copies, originals, strict=True)
            if isinstance(mine, torch.Tensor) and address(theirs) not in written
        ]
        with torch.no_grad(), undrawn():
            for node in self.gm.graph.nodes:
                if node.op == "placeholder":
                    self.env[node] = next(given)
                elif node.op == "get_attr":
                    self.env[node] = attrs[str(node.target)]
                elif node.op == "output":
                    outputs = map_arg(node.args[0], self.env.__getitem__)
                else:
                    self.env[node] = self._checked(node)
        named = [(f"output {i}", value) for i, (_, value) in enumerate(leaves(outputs))]
        return Effects(named, list(zip(self.names, copies, strict=True)))

    def _checked(self, node: Node) -> Any:
        """Run a node, and see that it computes what it does as written."""
        if not self._is_given_the_same(node):
            raise Illegal(node)
        try:
            value = seeded(node, functools.partial(self._node, node))
            if self.simulation.uneven is not None:
                make_uneven(node, value, self.simulation.uneven)
        except (Illegal, Refused, RuntimeError, IndexError, ValueError, TypeError):
            raise Illegal(node) from None
        if not self._is_view(node) and not is_started(node.target):
            pairs = zip(leaves(self.spec[node]), leaves(value), strict=True)
            if not all(equal(was, now) for (_, was), (_, now) in pairs):
                raise Illegal(node)
        if any(not torch.equal(t, before) for t, before in self.kept):
            raise Illegal(node)
        return value

    def _is_given_the_same(self, node: Node) -> bool:
        """Return whether a kernel that is not torch's own is given the strides and numbers of the trace.

        It may look at all of them, also where nothing that it returns shows that: many kernels ask for a
        stride of 1 in the last dimension, whatever its size. Numbers are asked for, too, where an operator's
        result says little of what it read.
        """
        is_kernel, is_opaque = _is_kernel(node), _is_opaque(node)
        if not (is_kernel or is_opaque):
            return True
        free = {n for slot, n in slots(node) if not copy_bytes(node, slot, self.spec[n])}
        for n in node.all_input_nodes:
            was, now = self.spec[n], self.env[n]
            if not isinstance(was, torch.Tensor):
                continue
            lies_there = not same_strides(was, now) or (is_opaque and was.stride() != now.stride())
            if lies_there and is_kernel:
                return False
            if not is_opaque or n in free:
                continue
            if address(was) in self.written:  # what was given is overwritten by now
                was = self.simulation.given.get((node, n), now)
            if not equal(was, now):
                return False
        return True

    def _is_view(self, node: Node) -> bool:
        """Return whether a node hands on bytes that others made, which nobody need read now."""
        if slots(node) or is_imitated(node.target):
            return False
        given = {
            address(self.spec[n]) for n in node.all_input_nodes if isinstance(self.spec[n], torch.Tensor)
        }
        value = self.spec[node]
        return node.target is operator.getitem or any(
            isinstance(v, torch.Tensor) and address(v) in given for _, v in leaves(value)
        )

    def _node(self, node: Node) -> Any:
        given: Any = map_arg((node.args, dict(node.kwargs)), self.env.__getitem__)
        args, kwargs = given
        if node.target is aten.copy_.default:
            return self._write_back(args[0], args[1])
        if node.target in (aten.as_strided.default, torch.ops.prims.as_strided.default):
            return self._as_strided(node, args)
        if is_imitated(node.target):
            in_place = bool(slots(node)) and (node, 0) not in self.copied
            return self.in_flight.call(node.target, args, kwargs, in_place=in_place)
        if not slots(node):
            return node.target(*args, **kwargs)  # type: ignore[operator]
        read: Any = map_arg(read_arguments(node), self._made_room(node))
        if node.target is aten.clone.default:
            return self._clone(node, args, kwargs)
        if node.target in SCATTERS or node.target in INDEX_PUTS:
            return self._operator(node, (args[0], *read), kwargs)
        form = form_of(node)
        if form is not None:
            kept = {slot for slot, _ in slots(node) if (node, slot) in self.copied}
            return called(node.target, form, (args[0], *read), kwargs, kept)
        if node.target is _torch.hop("triton_kernel_wrapper_functional"):
            return self._triton(node, {**kwargs, "kwargs": {**kwargs["kwargs"], **read}})
        copied = {c.slot: c.nbytes for c in self.chosen if c.node is node}
        try:
            return WrapperCall(node, self.spec, copied).run({**kwargs, **read})
        except Refused:
            raise Illegal from None

    def _made_room(self, node: Node) -> Any:
        """Return how an other operand is looked up, copied where that was chosen."""
        seen = itertools.count()

        def look_up(n: Node) -> Any:
            value = self.env[n]
            return copy_of(value) if (node, ("copy of", next(seen))) in self.copied else value

        return look_up

    def _write_back(self, into: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        if same_bytes(into, value):
            return into
        if overlap(into, value):
            raise Illegal
        self.written_back += nbytes(into)
        return into.copy_(value)

    def _moved(self, operand: Node) -> int:
        """Return how many elements further an operand's storage begins than it does as written."""
        return int(self.env[operand].storage_offset() - self.spec[operand].storage_offset())

    def _as_strided(self, node: Node, args: Any) -> torch.Tensor:
        base, size, stride, *offset = args
        if offset and offset[0] is not None:
            offset = [offset[0] + self._moved(node.args[0])]  # type: ignore[arg-type]
        return torch.as_strided(base, size, stride, *offset)

    def _clone(self, node: Node, args: Any, kwargs: Any) -> Any:
        kept = (node, 0) in self.copied or not is_plain_clone(node)
        return aten.clone.default(*args, **kwargs) if kept else args[0]

    def _operator(self, node: Node, args: Any, kwargs: Any) -> torch.Tensor:
        base: torch.Tensor = args[0]
        copied = (node, 0) in self.copied
        if copied and node.target is not aten.as_strided_scatter.default:
            return node.target(*args, **kwargs)  # type: ignore[no-any-return, operator]
        if node.target in INDEX_PUTS:
            read = [v for _, v in leaves(args[1:]) if isinstance(v, torch.Tensor)]
            if any(overlap(base, value) for value in read):
                raise Illegal
            return base.index_put_(*args[1:], **kwargs)
        if copied:
            base = copy_of(base)
        self._scatter(node, base, args, kwargs)
        return base

    def _scatter(self, node: Node, base: torch.Tensor, args: Any, kwargs: Any) -> None:
        source, where = args[1], list(args[2:])
        if node.target is aten.as_strided_scatter.default and len(where) > 2 and where[2] is not None:
            where[2] += base.storage_offset() - self.spec[node.args[0]].storage_offset()  # type: ignore[index]
        view = SCATTERS[node.target](base, *where, **kwargs)
        if same_bytes(view, source):
            return
        if overlap(view, source):
            raise Illegal
        view.copy_(source)

    def _triton(self, node: Node, kwargs: dict[str, Any]) -> Any:
        written = kwargs["tensors_to_clone"]
        kept = [name for name in written if (node, name) in self.copied]
        made = node.target(**{**kwargs, "tensors_to_clone": kept})  # type: ignore[operator]
        return {name: made.get(name, kwargs["kwargs"][name]) for name in written}
