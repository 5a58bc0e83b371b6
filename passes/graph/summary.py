"""What running a subgraph does to its operands: the bytes it reads, and what its outputs may share with them.

A summary is made bottom-up in one walk that asks schemas only, so that a subgraph which was rewritten
already (Inductor finishes subgraphs first) is read as well as a functional one. A subgraph that writes its
operands, or holds what is not understood, has no summary.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node

from .. import _torch
from ..memory.region import Region
from ..ops import higher_order, identities
from ..ops.declarations import declaration_of
from ..ops.nested import inside, mapped, nodes
from ..ops.schema import arguments, is_operator, schema_of, tensors
from ..ops.views import is_absolute
from ..ops.wrapper_names import is_wrapper, wraps_operator

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
        placeholders: the fake values of the placeholders.
        reads: for each placeholder whose elements are read the regions, in its own storage; ``None``
            stands for the whole storage.
        outputs: what is returned, ``None`` for what is no tensor.
        pinned: the placeholders of which bytes are named by an offset into their storage.
    """

    placeholders: tuple[Any, ...]
    reads: dict[int, frozenset[Region | None]]
    outputs: tuple[Output | None, ...]
    pinned: frozenset[int] = frozenset()

    def operands_of(self, result: int) -> frozenset[int]:
        """Return the placeholders whose storage a result may lie in."""
        output = self.outputs[result]
        return frozenset(o for o in output.origins if isinstance(o, int)) if output else frozenset()

    def stacked(self, call: higher_order.Call) -> frozenset[int]:
        """Return the placeholders that a call copies: the subgraph hands them on, to be stacked."""
        results = [i for i in range(len(self.outputs)) if call.is_stacked(i)]
        return frozenset().union(*(self.operands_of(i) for i in results))

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
        self._lowered = lowered
        self._known: dict[GraphModule, Summary | None] = {}

    def of(self, module: GraphModule) -> Summary | None:
        """Return the summary of a subgraph, ``None`` where it cannot be made."""
        if module not in self._known:
            self._known[module] = None  # a subgraph that calls itself is not understood
            with contextlib.suppress(_NotUnderstoodError):
                self._known[module] = _Walk(module, self).summary()
        return self._known[module]

    @property
    def lowered(self) -> bool:
        """Whether Inductor lowers the subgraphs."""
        return self._lowered


class _NotUnderstoodError(Exception):
    pass


class _Walk:
    def __init__(self, module: GraphModule, known: Summaries) -> None:
        self._graph = module.graph
        self._is_absolute = any(is_absolute(n) for n in module.graph.nodes)
        self._known = known
        self._values: dict[Node, Any] = {}  # nested like the node's value; origins where tensors are
        self._placeholders: list[Any] = []
        self._reads: dict[int, set[Region | None]] = {}
        self._pinned: set[int] = set()

    def summary(self) -> Summary:
        for node in self._graph.nodes:
            self._visit(node)
        returned = higher_order.outputs(self._graph)
        if returned is None:
            raise _NotUnderstoodError
        return Summary(
            tuple(self._placeholders),
            {i: frozenset(regions) for i, regions in self._reads.items()},
            tuple(self._output(node) for node in returned),
            frozenset(self._pinned),
        )

    def _output(self, node: Any) -> Output | None:
        value = higher_order.value_of(node)
        if value is None:
            if isinstance(node, Node) and any(True for _ in inside(frozenset, self._values.get(node))):
                raise _NotUnderstoodError
            return None
        origins = self._origins(node)
        if any(isinstance(o, tuple) and o[0].op == "get_attr" for o in origins):
            raise _NotUnderstoodError  # the module's own tensor may be known outside by another name
        return Output(value, origins)

    def _visit(self, node: Node) -> None:
        if node.op == "placeholder":
            self._placeholders.append(node.meta.get("val"))
            number = len(self._placeholders) - 1
            self._values[node] = _everywhere(node.meta.get("val"), frozenset({number}))
        elif node.op == "get_attr":
            self._attribute(node)
        elif node.op == "call_function":
            self._call(node)
        elif node.op != "output":
            raise _NotUnderstoodError

    def _attribute(self, node: Node) -> None:
        if higher_order.subgraph(self._graph, node) is None:
            self._values[node] = frozenset({(node, 0)})

    def _call(self, node: Node) -> None:
        call = higher_order.call_of(node)
        if is_absolute(node):
            self._pin(self._operand_origins(node))
        if node.target is operator.getitem:
            source, key = node.args[0], cast(int, node.args[1])
            value = self._values.get(source) if isinstance(source, Node) else None
            self._values[node] = value[key] if isinstance(value, list | dict) else None
        elif call is not None:
            self._nested(call)
        elif is_operator(node.target):
            self._operator(node)
        elif self._is_wrapper(node):
            self._read_all(node)
            self._values[node] = self._fresh(node)
        elif self._operands(node) or any(True for _ in tensors(node.meta.get("val"))):
            raise _NotUnderstoodError

    def _is_wrapper(self, node: Node) -> bool:
        """Return whether a node is a wrapper that clones whatever it writes."""
        if wraps_operator(node.target):
            return is_operator(node.args[0]) and "only_clone_these_tensors" not in node.meta
        return is_wrapper(node.target)

    def _operator(self, node: Node) -> None:
        schema = schema_of(node.target)
        given = dict(arguments(node))
        if schema.view or schema.view_or_copy:
            self._values[node] = self._view(node, given)
            return
        declared = declaration_of(node.target)
        written = (*schema.mutable, *(declared.writes if declared else ()))
        if schema.hides_accesses or any(
            isinstance(o, int) or o[0].op == "get_attr" for n in written for o in self._of(given.get(str(n)))
        ):
            raise _NotUnderstoodError  # it writes an operand, or what its module keeps
        if not schema.meta_only:
            # A functional copy reads its source; of the other operand it takes the shape.
            self._read_all(node, without={"self"} if schema.name == "aten::copy" else set())
        returned = [self._of(given.get(name)) if name else None for name in schema.returns]
        self._values[node] = self._fresh(node, returned)

    def _view(self, node: Node, given: dict[str, Any]) -> Any:
        schema = schema_of(node.target)
        viewed = frozenset().union(*(self._of(given.get(str(name))) for name in schema.returns))
        if not schema.view:
            self._read_all(node)
            viewed = viewed | self._operand_origins(node) | {(node, 0)}
        return _everywhere(node.meta.get("val"), viewed)

    def _fresh(self, node: Node, returned: list[Origins | None] | None = None) -> Any:
        """Return a storage of its own for each tensor of a result, or what the schema says it is."""
        by_key: dict[int | None, Origins] = {}
        for operand in node.all_input_nodes:
            for tensor in tensors(operand.meta.get("val")):
                by_key[_torch.storage_key(tensor)] = self._origins(operand)
        hides_alias = is_operator(node.target) and schema_of(node.target).hides_alias
        vanishes = hides_alias or (self._known.lowered and identities.may_vanish(node))
        more = self._operand_origins(node) if vanishes else frozenset()

        def one(tensor: torch.Tensor) -> Origins:
            key = _torch.storage_key(tensor)
            if key is None or key not in by_key:
                by_key[key] = frozenset({(node, len(by_key))})
            return by_key[key] | more

        value = mapped(torch.Tensor, one, node.meta.get("val"))
        if returned and isinstance(value, list) and len(value) == len(returned):
            return [v if r is None else r for v, r in zip(value, returned, strict=True)]
        if returned and returned[0] is not None and not isinstance(value, list):
            return returned[0]
        return value

    def _nested(self, call: higher_order.Call) -> None:
        """Carry the summary of a nested subgraph over to the operands of its call."""
        for body in (*call.bodies, *call.tests):
            summary = self._known.of(body.module)
            if summary is None:
                raise _NotUnderstoodError
            for number in (*summary.reads, *summary.stacked(call)):
                self._read(call.value(body.operands[number]))
            for number in summary.pinned:
                self._pin(self._of(call.value(body.operands[number])))
        for slot in call.slots:
            if not any(slot in body.operands for body in (*call.bodies, *call.tests)):
                self._read(call.value(slot))
        for slot in call.handed_on:
            self._read(call.value(slot))
        value = call.node.meta.get("val")
        if not isinstance(value, list | tuple):
            raise _NotUnderstoodError
        results = ((v, self._result(call, i)) for i, v in enumerate(value))
        self._values[call.node] = [_everywhere(v, origins) for v, origins in results]

    def _result(self, call: higher_order.Call, result: int) -> Origins:
        found: set[Origin] = {(call.node, result)}
        if call.is_stacked(result):
            return frozenset(found)
        for body in call.bodies:
            summary = self._known.of(body.module)
            assert summary is not None
            for number in summary.operands_of(result):
                found |= self._of(call.value(body.operands[number]))
            if not summary.is_fresh(result):
                found.add((call.node, -1))  # one storage stands for all results that are tied together
        return frozenset(found)

    def _pin(self, origins: Origins) -> None:
        """Note storages that are addressed by offsets; such addresses may reach any of their bytes."""
        for origin in origins:
            if isinstance(origin, int):
                self._pinned.add(origin)
                self._reads.setdefault(origin, set()).add(None)

    # -- origins and reads ---------------------------------------------------------------------

    def _operands(self, node: Node) -> list[Node]:
        return [n for n in node.all_input_nodes if any(True for _ in inside(frozenset, self._values.get(n)))]

    def _origins(self, node: Node) -> Origins:
        return frozenset().union(*inside(frozenset, self._values.get(node)))

    def _of(self, value: Any) -> Origins:
        found: Origins = frozenset()
        for node in nodes(value):
            found |= self._origins(node)
        return found

    def _operand_origins(self, node: Node) -> Origins:
        return frozenset().union(*(self._origins(n) for n in node.all_input_nodes))

    def _read_all(self, node: Node, without: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        if without:
            self._read([v for name, v in arguments(node) if name not in without])
        else:
            self._read([node.args, node.kwargs])

    def _read(self, value: Any) -> None:
        for node in nodes(value):
            for origin in self._origins(node):
                if isinstance(origin, int):
                    self._reads.setdefault(origin, set()).add(self._region(node, origin))

    def _region(self, node: Node, number: int) -> Region | None:
        """Return the bytes of a node inside a placeholder's storage, ``None`` for all of them.

        Bytes that are named by their offset into the storage are others for each operand.
        """
        value, owner = higher_order.value_of(node), self._placeholders[number]
        if value is None or not isinstance(owner, torch.Tensor):
            return None
        key = _torch.storage_key(owner)
        same = key is not None and _torch.storage_key(value) == key
        return Region.of(value) if same and not self._is_absolute else None


def _everywhere(value: Any, origins: Origins) -> Any:
    """Return a nested value with the same origins wherever it has a tensor."""
    return mapped(torch.Tensor, lambda _: origins, value)
