"""What the outputs of a subgraph may share with its operands, and whether anything else is known of it.

A summary is made bottom-up in one walk that asks schemas only, so that a subgraph which was rewritten
already (Inductor finishes subgraphs first) is read as well as a functional one. A subgraph that writes its
operands, or holds what is not understood, has no summary.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import operator
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node

from .. import _torch
from ..ops import higher_order, identities
from ..ops.nested import inside, mapped, nodes
from ..ops.schema import arguments, has_tensor, is_operator, schema_of, tensors, traits_of
from ..ops.wrapper_names import is_wrapper, wraps_operator
from .alias import written

# A storage that a value may lie in: a placeholder's (by its number), or one that a node makes.
Origin = int | tuple[Node, int]
Origins = frozenset[Origin]


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """A tensor that a subgraph returns.

    Args:
        value: its fake tensor.
        origins: the storages it may lie in.
    """

    value: torch.Tensor
    origins: Origins


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """What a subgraph does.

    Args:
        outputs: what is returned, ``None`` for what is no tensor.
    """

    outputs: tuple[Output | None, ...]

    def operands_of(self, result: int) -> frozenset[int]:
        """Return the placeholders whose storage a result may lie in."""
        output = self.outputs[result]
        return frozenset(o for o in output.origins if isinstance(o, int)) if output else frozenset()

    def is_fresh(self, result: int) -> bool:
        """Return whether a result shares storage neither with an operand nor with another result."""
        output = self.outputs[result]
        if output is None:
            return True
        others = (o for i, o in enumerate(self.outputs) if i != result and o is not None)
        return not self.operands_of(result) and all(not (output.origins & o.origins) for o in others)


class Summaries:
    """The summaries of subgraphs, each made once.

    Args:
        lowered: whether Inductor lowers the subgraphs; then a result that it may replace by the operand
            of an identity is taken to share storage with it.
    """

    def __init__(self, *, lowered: bool = False) -> None:
        self.lowered = lowered
        self._known: dict[GraphModule, Summary | None] = {}

    def of(self, module: GraphModule) -> Summary | None:
        """Return the summary of a subgraph, ``None`` where it cannot be made."""
        if module not in self._known:
            self._known[module] = None  # a subgraph that calls itself is not understood
            with contextlib.suppress(_NotUnderstoodError):
                self._known[module] = _Walk(module, self).summary()
        return self._known[module]


class _NotUnderstoodError(Exception):
    pass


class _Walk:
    def __init__(self, module: GraphModule, known: Summaries) -> None:
        self._graph = module.graph
        self._known = known
        self._values: dict[Node, Any] = {}  # nested like the node's value; origins where tensors are
        self._count = 0  # of placeholders

    def summary(self) -> Summary:
        for node in self._graph.nodes:
            if node.op != "output":
                self._values[node] = self._value(node)
        returned = higher_order.outputs(self._graph)
        if returned is None:
            raise _NotUnderstoodError
        return Summary(tuple(map(self._output, returned)))

    def _output(self, node: Any) -> Output | None:
        value, origins = higher_order.value_of(node), self._of(node)
        if value is None and not origins:
            return None
        # The module's own tensor may be known outside by another name.
        if value is None or any(isinstance(o, tuple) and o[0].op == "get_attr" for o in origins):
            raise _NotUnderstoodError
        return Output(value, origins)

    def _value(self, node: Node) -> Any:
        """Return the origins of what a node makes."""
        val = node.meta.get("val")
        if node.op == "placeholder":
            self._count += 1
            return _everywhere(val, frozenset({self._count - 1}))
        if node.op == "get_attr":
            return frozenset({(node, 0)}) if higher_order.subgraph(self._graph, node) is None else None
        if node.op != "call_function":
            raise _NotUnderstoodError
        if node.target is operator.getitem:
            source, key = cast(tuple[Any, Any], node.args)
            value = self._values.get(source) if isinstance(source, Node) else None
            return value[key] if isinstance(value, list | dict) else None
        call = higher_order.call_of(node)
        if call is not None:
            return self._called(call)
        if is_operator(node.target):
            return self._operator(node)
        if _clones_what_it_writes(node):
            return self._fresh(node)
        if self._of(_given(node)) or has_tensor(val):
            raise _NotUnderstoodError
        return None

    def _operator(self, node: Node) -> Any:
        schema, given = schema_of(node.target), dict(arguments(node))
        returned = [self._of(given.get(str(name))) for name in schema.returns]
        if schema.view:
            return _everywhere(node.meta.get("val"), frozenset().union(*returned))
        if schema.view_or_copy:
            return _everywhere(node.meta.get("val"), self._of(_given(node)) | {(node, 0)})
        outer = (isinstance(o, int) or o[0].op == "get_attr" for o in self._of(written(node)))
        if schema.hides_accesses or any(outer):
            raise _NotUnderstoodError  # it writes an operand, or what its module keeps
        value = self._fresh(node)
        if isinstance(value, list) and len(value) == len(returned):
            return [
                mine if name else v for v, name, mine in zip(value, schema.returns, returned, strict=True)
            ]
        is_handed_back = returned and schema.returns[0] is not None and not isinstance(value, list)
        return returned[0] if is_handed_back else value

    def _fresh(self, node: Node) -> Any:
        """Return a storage of its own for each tensor of a result, but of an operand where they share it."""
        by_key: dict[int | None, Origins] = {}
        for operand in node.all_input_nodes:
            for tensor in tensors(operand.meta.get("val")):
                by_key[_torch.storage_key(tensor)] = self._of(operand)
        hides_alias = traits_of(node.target).hides_alias
        vanishes = hides_alias or (self._known.lowered and identities.may_vanish(node))
        more = self._of(_given(node)) if vanishes else frozenset()

        def one(tensor: torch.Tensor) -> Origins:
            key = _torch.storage_key(tensor)
            if key is None or key not in by_key:
                by_key[key] = frozenset({(node, len(by_key))})
            return by_key[key] | more

        return mapped(torch.Tensor, one, node.meta.get("val"))

    def _called(self, call: higher_order.Call) -> list[Any]:
        """Carry the summaries of subgraphs over to the operands of their call."""
        value = call.node.meta.get("val")
        known = [self._known.of(body.module) for body in (*call.bodies, *call.tests)]
        if not isinstance(value, list | tuple) or None in known:
            raise _NotUnderstoodError
        return [_everywhere(v, self._result(call, i)) for i, v in enumerate(value)]

    def _result(self, call: higher_order.Call, result: int) -> Origins:
        found: set[Origin] = {(call.node, result)}
        for body in call.bodies if not call.is_stacked(result) else ():
            summary = self._known.of(body.module)
            assert summary is not None
            found |= self._of([call.value(body.operands[i]) for i in summary.operands_of(result)])
            if not summary.is_fresh(result):
                found.add((call.node, -1))  # one storage stands for all results that are tied together
        return frozenset(found)

    def _of(self, value: Any) -> Origins:
        """Return where what lies inside an argument may lie."""
        found = (inside(frozenset, self._values.get(node)) for node in nodes(value))
        return frozenset(itertools.chain.from_iterable(itertools.chain.from_iterable(found)))


def _everywhere(value: Any, origins: Origins) -> Any:
    """Return a nested value with the same origins wherever it has a tensor."""
    return mapped(torch.Tensor, lambda _: origins, value)


def _given(node: Node) -> tuple[Any, Any]:
    return node.args, node.kwargs


def _clones_what_it_writes(node: Node) -> bool:
    """Return whether a node is a wrapper that clones whatever it writes."""
    if wraps_operator(node.target):
        return is_operator(node.args[0]) and "only_clone_these_tensors" not in node.meta
    return is_wrapper(node.target)
