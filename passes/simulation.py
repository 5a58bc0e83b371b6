"""A naive, independent execution of a functional graph with a chosen set of candidates in place.

It shares no analysis with the pass: each candidate in the set really writes into its operand's tensor,
every other one copies first, and the contract (``equivalence.py``) says whether the choice was legal.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from . import _torch
from .equivalence import Effects, difference, effects
from .execution import address, attributes, cloned, leaves

aten = torch.ops.aten

_SCATTERS = {
    aten.slice_scatter.default: aten.slice.Tensor,
    aten.select_scatter.default: aten.select.int,
    aten.diagonal_scatter.default: aten.diagonal.default,
    aten.as_strided_scatter.default: aten.as_strided.default,
}
_INDEX_PUTS = (aten.index_put.default, aten._unsafe_index_put.default)


class Illegal(Exception):
    """A choice that no rewrite may make: a copy onto bytes that it is still reading."""


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One thing that may be copied or not.

    Args:
        node: the node.
        slot: an argument, an element ``(argument, i)``, or a base's number: a candidate; or
            ``("copy of", i)``: the node's i-th other operand, copied to make room for a write.
        nbytes: bytes of the copy.
    """

    node: Node
    slot: Any
    nbytes: int

    @property
    def is_candidate(self) -> bool:
        """Whether it is a candidate, copied unless it is in place; else an operand, copied at will."""
        return not (isinstance(self.slot, tuple) and self.slot[0] == "copy of")


class Simulation:
    """A functional graph with its inputs, run once as written and then with any choices.

    Raises:
        RunError: the functional graph itself does not run on these inputs.
    """

    def __init__(self, gm: GraphModule, inputs: Sequence[Any]) -> None:
        self.gm = gm
        self.inputs = list(inputs)
        self.spec: dict[Node, Any] = {}
        self.expected = effects(gm, inputs, self.spec.__setitem__)
        self.candidates = [c for node in gm.graph.nodes for c in self._candidates(node)]
        self.operands = list(self._operand_copies())

    def _candidates(self, node: Node) -> Iterator[Choice]:
        for slot, operand in slots(node):
            yield Choice(node, slot, nbytes(self.spec[operand]))

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
            for (slot, operand), key in zip(slots(node), written, strict=True):
                result = _result(self.spec[node], node, slot)
                if address(result) != key:
                    owner[address(result)] = root(address(self.spec[operand]))

    def cost(self, copied: frozenset[Choice]) -> int | None:
        """Return the bytes copied when exactly ``copied`` is copied, ``None`` when that is illegal."""
        run = _Run(self, copied)
        try:
            actual = run.effects()
        except (Illegal, RuntimeError, IndexError, ValueError, TypeError):
            return None
        shares = _unshared(self.expected, actual, _output_nodes(self.gm))
        if shares is None or difference(self.expected, shares[1]) is not None:
            return None
        return sum(c.nbytes for c in copied) + run.written_back + shares[0]


def slots(node: Node) -> list[tuple[Any, Node]]:
    """Return ``(slot, operand)`` of each candidate of a node."""
    if node.op != "call_function":
        return []
    if node.target in _SCATTERS or node.target in _INDEX_PUTS or node.target is aten.clone.default:
        return [(0, node.args[0])] if isinstance(node.args[0], Node) else []
    if node.target is _torch.hop("auto_functionalized"):
        return list(_v1_slots(node))
    if node.target is _torch.hop("auto_functionalized_v2"):
        return list(enumerate(node.kwargs["_all_bases"]))  # type: ignore[arg-type]
    if node.target is _torch.hop("triton_kernel_wrapper_functional"):
        given: Any = node.kwargs["kwargs"]
        return [(name, given[name]) for name in node.kwargs["tensors_to_clone"]]  # type: ignore[union-attr]
    return []


def _v1_slots(node: Node) -> Iterator[tuple[Any, Node]]:
    for name in mutable(node.args[0]):
        value = node.kwargs.get(name)
        if isinstance(value, Node):
            yield name, value
        elif isinstance(value, list | tuple):
            yield from (((name, i), item) for i, item in enumerate(value) if isinstance(item, Node))


def mutable(op: Any) -> list[str]:
    """Return the names of the arguments that an operator writes."""
    return [a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write]


def read_arguments(node: Node) -> Any:
    """Return the arguments of a candidate's node that it only reads, nested as the node holds them."""
    if not slots(node) or node.target is aten.clone.default:
        return ()
    if node.target in _SCATTERS or node.target in _INDEX_PUTS:
        return node.args[1:]
    if node.target is _torch.hop("triton_kernel_wrapper_functional"):
        given, written = node.kwargs["kwargs"], node.kwargs["tensors_to_clone"]
        return {k: v for k, v in given.items() if k not in written}  # type: ignore[operator, union-attr]
    names = {"_all_bases", *mutable(node.args[0])}
    return {k: v for k, v in node.kwargs.items() if k not in names}


def others(node: Node) -> list[Node]:
    """Return the operands of a candidate's node that it only reads, one for each position."""
    found: list[Node] = []
    map_arg(read_arguments(node), lambda n: found.append(n) or n)
    return found


def nbytes(value: Any) -> int:
    """Return the bytes of a tensor's elements."""
    return int(value.numel() * value.element_size())


def _result(value: Any, node: Node, slot: Any) -> torch.Tensor:
    """Return the result that belongs to a candidate."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, dict):
        return value[slot]  # type: ignore[no-any-return]
    if isinstance(slot, int):
        return value[len(value) - len(node.kwargs["_all_bases"]) + slot]  # type: ignore[no-any-return, arg-type]
    name, item = slot if isinstance(slot, tuple) else (slot, None)
    names = mutable(node.args[0])
    whole = value[len(value) - len(names) + names.index(name)]
    return whole if item is None else whole[item]  # type: ignore[no-any-return]


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor with its strides, its offset and the bytes between its elements."""
    return cloned([tensor])[0]  # type: ignore[no-any-return]


def _overlap(one: torch.Tensor, two: torch.Tensor) -> bool:
    if address(one) != address(two) or not one.numel() or not two.numel():
        return False
    return bool(np.shares_memory(_array(one), _array(two)))


def _array(tensor: torch.Tensor) -> Any:
    return tensor.detach().numpy()


def _same_bytes(one: torch.Tensor, two: torch.Tensor) -> bool:
    alike = one.dtype == two.dtype and one.shape == two.shape and one.data_ptr() == two.data_ptr()
    pairs = zip(one.stride(), two.stride(), one.shape, strict=False)
    return alike and all(a == b or n == 1 for a, b, n in pairs)


class _Run:
    """One execution with one set of copies."""

    def __init__(self, simulation: Simulation, copied: frozenset[Choice]) -> None:
        self.gm = simulation.gm
        self.spec = simulation.spec
        self.inputs = simulation.inputs
        self.names = [name for name, _ in simulation.expected.inputs]
        self.copied = {(c.node, c.slot) for c in copied}
        self.env: dict[Node, Any] = {}
        self.written_back = 0

    def effects(self) -> Effects:
        own = attributes(self.gm)
        copies = cloned([*self.inputs, *own.values()])
        attrs = dict(zip(own, copies[len(self.inputs) :], strict=True))
        given, outputs = iter(copies), None
        with torch.no_grad():
            for node in self.gm.graph.nodes:
                if node.op == "placeholder":
                    self.env[node] = next(given)
                elif node.op == "get_attr":
                    self.env[node] = attrs[str(node.target)]
                elif node.op == "output":
                    outputs = map_arg(node.args[0], self.env.__getitem__)
                else:
                    self.env[node] = self._node(node)
        named = [(f"output {i}", value) for i, (_, value) in enumerate(leaves(outputs))]
        return Effects(named, list(zip(self.names, copies, strict=True)))

    def _node(self, node: Node) -> Any:
        args, kwargs = map_arg((node.args, dict(node.kwargs)), self.env.__getitem__)
        if node.target is aten.copy_.default:
            return self._write_back(args[0], args[1])
        if node.target is aten.as_strided.default:
            return self._as_strided(node, args)
        if not slots(node):
            return node.target(*args, **kwargs)  # type: ignore[operator]
        read = map_arg(read_arguments(node), self._made_room(node))
        if node.target is aten.clone.default:
            return self._clone(node, args, kwargs)
        if node.target in _SCATTERS or node.target in _INDEX_PUTS:
            return self._operator(node, (args[0], *read), kwargs)
        if node.target is _torch.hop("triton_kernel_wrapper_functional"):
            return self._triton(node, {**kwargs, "kwargs": {**kwargs["kwargs"], **read}})
        return self._wrapper(node, {**kwargs, **read})

    def _made_room(self, node: Node) -> Any:
        """Return how an other operand is looked up, copied where that was chosen."""
        seen = itertools.count()

        def look_up(n: Node) -> Any:
            value = self.env[n]
            return copy_of(value) if (node, ("copy of", next(seen))) in self.copied else value

        return look_up

    def _write_back(self, into: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        if _same_bytes(into, value):
            return into
        if _overlap(into, value):
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
        return aten.clone.default(*args, **kwargs) if (node, 0) in self.copied else args[0]

    def _operator(self, node: Node, args: Any, kwargs: Any) -> torch.Tensor:
        base: torch.Tensor = args[0]
        copied = (node, 0) in self.copied
        if copied and node.target is not aten.as_strided_scatter.default:
            return node.target(*args, **kwargs)  # type: ignore[no-any-return, operator]
        if node.target in _INDEX_PUTS:
            read = [v for _, v in leaves(args[1:]) if isinstance(v, torch.Tensor)]
            if any(_overlap(base, value) for value in read):
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
        view = _SCATTERS[node.target](base, *where, **kwargs)  # type: ignore[index]
        if _same_bytes(view, source):
            return
        if _overlap(view, source):
            raise Illegal
        view.copy_(source)

    def _triton(self, node: Node, kwargs: dict[str, Any]) -> Any:
        written = kwargs["tensors_to_clone"]
        kept = [name for name in written if (node, name) in self.copied]
        made = node.target(**{**kwargs, "tensors_to_clone": kept})  # type: ignore[operator]
        return {name: made.get(name, kwargs["kwargs"][name]) for name in written}

    def _wrapper(self, node: Node, kwargs: dict[str, Any]) -> Any:
        op: Any = node.args[0]
        if node.target is _torch.hop("auto_functionalized"):
            for slot, _ in slots(node):
                name, item = slot if isinstance(slot, tuple) else (slot, None)
                if item is None and (node, slot) in self.copied:
                    kwargs[name] = copy_of(kwargs[name])
                elif item is not None:
                    kwargs[name] = list(kwargs[name])
                    if (node, slot) in self.copied:
                        kwargs[name][item] = copy_of(kwargs[name][item])
            written = [kwargs[name] for name in mutable(op)]
        else:
            written = [
                copy_of(base) if (node, i) in self.copied else base
                for i, base in enumerate(kwargs.pop("_all_bases"))
            ]
            kwargs = self._regenerated(node, op, written, kwargs)
        result = op(**kwargs)
        return (*result, *written) if isinstance(result, tuple) else (result, *written)

    def _regenerated(self, node: Node, op: Any, bases: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return an operator's arguments, with the views of its bases that v2 describes."""
        args = {a.name: kwargs[a.name] for a in op._schema.arguments if a.name in kwargs}
        for name in mutable(op):
            if f"_{name}_length" in kwargs:
                count = kwargs[f"_{name}_length"]
                items = [self._view(node, bases, kwargs, f"_{name}_{i}") for i in range(count or 0)]
                args[name] = None if count is None else items
            else:
                args[name] = self._view(node, bases, kwargs, f"_{name}")
        return args

    def _view(self, node: Node, bases: list[Any], kwargs: dict[str, Any], prefix: str) -> Any:
        index = kwargs[f"{prefix}_base_index"]
        if index is None:
            return None
        base = bases[index]
        if f"{prefix}_slice_dim" in kwargs:
            dim, start, end = (kwargs[f"{prefix}_slice_{k}"] for k in ("dim", "start", "end"))
            return aten.slice.Tensor(base, dim, start, end)
        if f"{prefix}_storage_offset" in kwargs:
            operand: Any = node.kwargs["_all_bases"][index]  # type: ignore[index]
            moved = base.storage_offset() - self.spec[operand].storage_offset()
            size, stride = kwargs[f"{prefix}_size"], kwargs[f"{prefix}_stride"]
            return torch.as_strided(base, size, stride, kwargs[f"{prefix}_storage_offset"] + moved)
        return base


def _output_nodes(gm: GraphModule) -> list[Any]:
    output = next(n for n in reversed(gm.graph.nodes) if n.op == "output")
    return [node for _, node in leaves(output.args[0])]


def _unshared(expected: Effects, actual: Effects, nodes: list[Any]) -> tuple[int, Effects] | None:
    """Clone outputs until none shares storage that it should not; the least bytes, or ``None``.

    Outputs that share storage as written stay together, so only one that stands alone can be cloned.
    """
    inputs = {address(v) for _, v in actual.inputs if isinstance(v, torch.Tensor)}
    given = {address(v) for _, v in expected.inputs if isinstance(v, torch.Tensor)}
    classes: dict[int, dict[int, list[int]]] = {}
    for i, ((_, was), (_, now)) in enumerate(zip(expected.outputs, actual.outputs, strict=True)):
        if isinstance(was, torch.Tensor) and now.numel():
            classes.setdefault(address(now), {}).setdefault(address(was), []).append(i)
    outputs, total = list(actual.outputs), 0
    for key, groups in classes.items():
        loose = [g for k, g in groups.items() if k not in given]
        if key not in inputs and loose and len(loose) == len(groups):
            loose.remove(max(loose, key=lambda g: (len({nodes[i] for i in g}), nbytes(outputs[g[0]][1]))))
        for group in loose:
            if len({nodes[i] for i in group}) > 1:
                return None
            copy = copy_of(outputs[group[0]][1])
            total += nbytes(copy)
            for i in group:
                outputs[i] = (outputs[i][0], copy)
    return total, Effects(outputs, actual.inputs)
