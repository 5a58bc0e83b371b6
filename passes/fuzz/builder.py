"""Building functional graphs by hand, node by node, each with the fake value that tracing would record."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from .. import _torch
from ..ops.views import is_expanded

aten: Any = torch.ops.aten
_SCATTERS = (["slice_scatter"], ["select_scatter"], ["diagonal_scatter"], ["as_strided_scatter"])


class GraphBuilder:
    """A functional graph under construction, with the real inputs that it will be run on.

    Args:
        fake_mode: of the graph that this one will be a subgraph of.
    """

    def __init__(self, fake_mode: Any = None) -> None:
        self.graph: Graph = Graph()
        self.root: torch.nn.Module = torch.nn.Module()
        self.fake_mode: Any = fake_mode or _torch.new_fake_mode()
        self.inputs: list[torch.Tensor] = []
        self._buffers = 0
        self._subgraphs = 0

    def placeholder(self, tensor: torch.Tensor) -> Node:
        """Add an input that the caller passes; all inputs come before the first call."""
        node = self.graph.placeholder(f"arg{len(self.inputs)}")
        self.inputs.append(tensor)
        node.meta["val"] = self.fake_mode.from_tensor(tensor)
        return node

    def buffer(self, tensor: torch.Tensor) -> Node:
        """Add a tensor that the module owns (``get_attr``)."""
        name = f"buffer{self._buffers}"
        self._buffers += 1
        self.root.register_buffer(name, tensor)
        node = self.graph.get_attr(name)
        node.meta["val"] = self.fake_mode.from_tensor(tensor)
        return node

    def operand(self, like: torch.Tensor) -> Node:
        """Add an input that the caller of a subgraph passes, laid out like a fake tensor."""
        node = self.graph.placeholder(f"arg{len(self.graph.nodes)}")
        node.meta["val"] = self.fresh(like)
        return node

    def fresh(self, like: torch.Tensor) -> torch.Tensor:
        """Return a new fake tensor laid out like another one."""
        with self.fake_mode:
            return _same_layout(like)

    def copied(self, like: torch.Tensor) -> torch.Tensor:
        """Return a new fake tensor with the strides of another one, at the beginning of a storage."""
        with self.fake_mode:
            return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)

    def subgraph(self, module: GraphModule) -> Node:
        """Add a subgraph to the module, and the node that names it."""
        name = f"subgraph{self._subgraphs}"
        self._subgraphs += 1
        self.root.add_module(name, module)
        return self.graph.get_attr(name)

    def called(self, target: Any, args: tuple[Any, ...], value: Any) -> Node:
        """Add a call whose fake value is known."""
        node = self.graph.call_function(target, args)
        node.meta["val"] = value
        return node

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Add a call of an operator; raises what the operator raises, and then adds nothing."""
        given, named = map_arg((args, kwargs), lambda n: n.meta["val"])
        with self.fake_mode:
            value = target(*given, **named)
            if str(target).split(".")[1:2] in _SCATTERS:
                value = _scattered(given[0])
        node = self.graph.call_function(target, args, kwargs)
        node.meta["val"] = value
        return node

    def item(self, node: Node, index: Any) -> Node:
        """Add ``node[index]``."""
        return self.call(operator.getitem, node, index)

    def v1(self, op: Any, **kwargs: Any) -> list[Any]:
        """Add an ``auto_functionalized`` wrapper; returns the operator's results, then the mutated tensors.

        The list holds a node for each tensor, a list of nodes for a list of tensors, and ``None``.
        """
        return self._results(self.call(_torch.hop("auto_functionalized"), op, **kwargs))

    def v2(self, op: Any, views: dict[str, Any], **kwargs: Any) -> list[Any]:
        """Add an ``auto_functionalized_v2`` wrapper; returns the operator's results, then the new bases.

        Args:
            op: the mutable operator.
            views: for each mutated argument ``None``, a pair ``(base, view)`` of nodes, or a list of pairs;
                the same node twice is the base itself.
            kwargs: what it only reads.
        """
        bases: list[Node] = []
        encoded: dict[str, Any] = {}
        for name, value in views.items():
            if value is None and _is_list(op, name):
                encoded[f"_{name}_length"] = None
            elif isinstance(value, list):
                encoded[f"_{name}_length"] = len(value)
                for i, pair in enumerate(value):
                    encoded.update(_encoded(f"_{name}_{i}", pair, bases))
            else:
                encoded.update(_encoded(f"_{name}", value, bases))
        wrapper = _torch.hop("auto_functionalized_v2")
        return self._results(self.call(wrapper, op, **kwargs, **encoded, _all_bases=bases))

    def _results(self, node: Node) -> list[Any]:
        return [self._taken(node, i, value) for i, value in enumerate(node.meta["val"])]

    def _taken(self, node: Node, index: int, value: Any) -> Any:
        if value is None:
            return None
        taken = self.item(node, index)
        if isinstance(value, list):
            return [self._taken(taken, i, v) for i, v in enumerate(value)]
        return taken

    def finished(self, outputs: list[Node] | Node) -> GraphModule:
        """Return the graph, without nodes that nothing needs; it returns a tuple, or one value."""
        returned = outputs if isinstance(outputs, Node) else tuple(outputs)
        self.graph.output(returned).meta["val"] = map_arg(returned, lambda n: n.meta["val"])
        for node in reversed(list(self.graph.nodes)):
            if node.op in ("call_function", "get_attr") and not node.users:
                if node.target is not aten.copy_.default:
                    self.graph.erase_node(node)
        self.graph.lint()
        return GraphModule(self.root, self.graph)


def _scattered(operand: torch.Tensor) -> torch.Tensor:
    """Return what a view scatter really makes: it keeps strides and offset, or clones what is expanded.

    FakeTensor answers with offset 0 when a call is cached or decomposed; torch's own kernels do not.
    """
    return torch.empty_like(operand.clone()) if is_expanded(operand) else _same_layout(operand)


def _same_layout(tensor: torch.Tensor) -> torch.Tensor:
    """Return a fresh tensor with the same strides and the same offset."""
    ends = [(n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)]
    size = tensor.storage_offset() + 1 + sum(ends) if tensor.numel() else 0
    fresh = torch.empty(size, dtype=tensor.dtype, device=tensor.device)
    return fresh.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _is_list(op: Any, name: str) -> bool:
    argument = next(a for a in op._schema.arguments if a.name == name)
    return "[]" in str(argument.type) or "List" in str(argument.type)


def _encoded(prefix: str, pair: tuple[Node, Node] | None, bases: list[Node]) -> dict[str, Any]:
    """Return how a v2 wrapper describes one mutated argument; adds its base to ``bases`` when new."""
    if pair is None:
        return {f"{prefix}_base_index": None}
    base, view = pair
    if base not in bases:
        bases.append(base)
    found: dict[str, Any] = {f"{prefix}_base_index": bases.index(base)}
    if view is base:
        return found
    whole, part = base.meta["val"], view.meta["val"]
    if _layout(whole) == _layout(part):
        return {**found, f"{prefix}_alias": True}
    dims = [d for d in range(whole.dim()) if whole.dim() == part.dim() and whole.shape[d] != part.shape[d]]
    if len(dims) == 1 and whole.stride() == part.stride():
        distance = part.storage_offset() - whole.storage_offset()
        start, rest = divmod(distance, whole.stride(dims[0]) or 1)
        if not rest and start >= 0 and start + part.shape[dims[0]] <= whole.shape[dims[0]]:
            end = start + part.shape[dims[0]]
            values = {"slice_dim": dims[0], "slice_start": start, "slice_end": end}
            return {**found, **{f"{prefix}_{k}": v for k, v in values.items()}}
    found[f"{prefix}_size"] = list(part.shape)
    found[f"{prefix}_stride"] = list(part.stride())
    found[f"{prefix}_storage_offset"] = part.storage_offset()
    return found


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
