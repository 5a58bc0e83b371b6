"""Constants that the CPU makes for a GPU are made on the GPU: nothing is copied there, or waited for.

A constant moves with all that is computed of it on the CPU, if every user takes it on the GPU: none returns
it, asks for its elements, or mixes it with what the CPU alone has. Which values go together a union-find
knows. A copy to the GPU is a copy on it then, and dropped where nobody can tell: Inductor takes the operand
for it always, so that two outputs may be one tensor. Random numbers are others on a GPU, and stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Graph, Node

from ..graph.alias import is_view, uses, written
from ..graph.emit import is_dense
from ..graph.movable import is_movable
from ..ops.computed import has_code, is_factory
from ..ops.schema import argument, has_tensor, is_operator, schema_of, tensors, traits_of
from .ground import Ground
from .rule import Places, Rule

aten: Any = torch.ops.aten
prims: Any = torch.ops.prims
_KINDS = ("cuda", "xpu")
_INDEX_TYPES = (torch.bool, torch.uint8, torch.int8)  # of a mask


def _rewrite(graph: Graph) -> Places:
    devices = {value.device for node in graph.nodes for value in tensors(node.meta.get("val"))}
    found = [device for device in devices if device.type not in ("cpu", "meta")]
    if len(found) != 1 or found[0].type not in _KINDS:
        return
    ground, together = Ground(graph), _Together()
    for node in graph.nodes:
        _see(ground, together, node)
    moving = []
    for node in together.values():
        why = together.why(node)
        if why is not None and _is_constructor(node):
            yield node.name, node if why else None, why
        if why == "":
            moving.append(node)
    for node in moving:
        _move(ground, node, found[0])
    copies = [u for node in moving for u in list(node.users) if u.target is prims.device_put.default]
    for copy in copies:
        _drop(ground, copy)


class _Together:
    """Values on the CPU, which of them go to the GPU together, and what keeps them on the CPU."""

    def __init__(self) -> None:
        self._above: dict[Node, Node] = {}
        self._stopped: dict[Node, str] = {}
        self._is_taken: set[Node] = set()

    def __contains__(self, node: Node) -> bool:
        return node in self._above

    def values(self) -> Iterator[Node]:
        """Yield all values, in the order of the graph."""
        return iter(self._above)

    def add(self, node: Node, *operands: Node) -> None:
        """Add a value that goes where its operands go."""
        top = self._above[node] = node
        for operand in operands:
            other = self._top(operand)
            if other is not top:
                self._above[other] = top
                if other in self._is_taken:
                    self._is_taken.add(top)
                if other in self._stopped:
                    self._stopped.setdefault(top, self._stopped[other])

    def take(self, operand: Node) -> None:
        """Note that the GPU reads a value."""
        self._is_taken.add(self._top(operand))

    def stop(self, operand: Node, why: str) -> None:
        """Note what keeps a value on the CPU."""
        self._stopped.setdefault(self._top(operand), why)

    def why(self, node: Node) -> str | None:
        """Return why a value stays, empty if it moves, ``None`` where no GPU wants it."""
        top = self._top(node)
        return self._stopped.get(top, "") if top in self._is_taken else None

    def _top(self, node: Node) -> Node:
        while self._above[node] is not node:
            self._above[node] = node = self._above[self._above[node]]
        return node


def _see(ground: Ground, together: _Together, node: Node) -> None:
    """Note what a node does with values that could move, and whether its own could."""
    values = list(tensors(node.meta.get("val"))) if node.op == "call_function" else []
    operands = [n for n in node.all_input_nodes if n in together]
    is_on_cpu = bool(values) and all(value.device.type == "cpu" for value in values)
    if is_on_cpu and (_is_constructor(node) or _follows(together, node)):
        together.add(node, *operands)
        return
    is_on_gpu = bool(values) and not is_on_cpu
    for operand in operands:
        why = _kept_by(ground, node, operand, is_on_gpu=is_on_gpu)
        if why:
            together.stop(operand, why)
        if is_on_gpu:
            together.take(operand)


def _is_constructor(node: Node) -> bool:
    """Return whether a node makes a tensor of no other, on a device that it names or by default."""
    if node.op != "call_function" or not is_factory(node) or node.kwargs.get("pin_memory"):
        return False
    given = any(has_tensor(n.meta.get("val")) for n in node.all_input_nodes)
    return "device" in schema_of(node.target).names and not given and is_movable(node)


def _follows(together: _Together, node: Node) -> bool:
    """Return whether a node computes on the GPU what it computes on the CPU, of what moves there."""
    operands = [n for n in node.all_input_nodes if has_tensor(n.meta.get("val"))]
    if not operands or not all(n in together for n in operands) or not is_movable(node):
        return False
    if not is_operator(node.target):  # one of several results
        return True
    if node.target is prims.device_put.default or node.kwargs.get("pin_memory"):
        return False
    if is_factory(node) or argument(node, "device") is not None:
        return is_factory(node)
    return torch.Tag.pointwise in node.target.tags or is_view(node) or has_code(node.target)  # type: ignore[union-attr]


def _kept_by(ground: Ground, node: Node, operand: Node, *, is_on_gpu: bool) -> str:
    """Return why a node needs an operand on the CPU, empty where it takes it on the GPU as well."""
    if node.op == "output":
        return "it is returned"
    if not is_operator(node.target) or operand in written(node):
        return "it goes to what may need it on the CPU"
    traits, val = schema_of(node.target), operand.meta["val"]
    if traits.meta_only and not has_tensor(node.meta.get("val")):
        return ""
    if not is_on_gpu or not traits.name.startswith(("aten::", "prims::")):
        return "it is used on the CPU"
    if node.target is prims.device_put.default:
        is_kept = ground.alike(node, operand, is_moved=True) and is_dense(val)
        return "" if is_kept else "its copy is laid out in another way"
    if traits.is_index_put and operand is argument(node, "values"):
        masks = [i for i in argument(node, "indices") if i is not None]
        if any(i.meta["val"].dtype in _INDEX_TYPES for i in masks):
            return "a number that is stored by a mask is read on the CPU"
    is_copy = traits.is_copy or node.target is aten.copy_.default or node.target is aten._to_copy.default
    if traits.picks or traits.is_scatter or is_copy:
        return ""
    # A number of another dtype is converted once more on the GPU, before it is used.
    others = [n.meta["val"] for n in node.all_input_nodes if n is not operand]
    dtypes = {v.dtype for v in (*tensors(others), *tensors(node.meta["val"]))}
    is_elementwise = torch.Tag.pointwise in node.target.tags  # type: ignore[union-attr]
    if is_elementwise and isinstance(val, torch.Tensor) and val.dim() == 0 and val.dtype in dtypes:
        return ""
    return "it is used on the CPU"


def _move(ground: Ground, node: Node, device: torch.device) -> None:
    """Have a node compute on a device."""
    if is_operator(node.target) and is_factory(node):
        needs = _is_constructor(node) or argument(node, "device") is not None
        node.kwargs = {**node.kwargs, "device": device} if needs else node.kwargs
    del node.meta["val"]
    node.meta["val"] = ground.emitter.value(node)


def _drop(ground: Ground, copy: Node) -> None:
    """Drop a copy to where its operand is by now, or keep it as one of its own."""
    operand: Any = copy.args[0]
    # What may hand on its operand itself is not known to share its storage: it does with the copy's, too.
    is_handed_on = any(traits_of(user.target).hides_alias for user, _ in uses(copy))
    if not is_handed_on and ground.unite(copy, operand):
        ground.replace(copy, operand)
    else:
        copy.target, copy.args, copy.kwargs = aten.clone.default, (operand,), {}


RULE = Rule("constructors", _rewrite)
