"""Which graphs are not run a second time, because that would tell nothing or do something twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .. import _torch
from ..graph.collective import is_collective
from ..graph.copy import all_graphs
from ..ops.schema import is_operator, target_name
from ..ops.wrapper import wrapped
from .collectives import is_known

# Operators that do something that no tensor shows. A namespace ends with ::, a name without does too.
_DOES = {
    "higher_order::call_torchbind": "a call of a script object, whose state cannot be copied",
    "higher_order::print": "printing",
    "higher_order::graphsafe_run_with_rng_state": "a random generator as an operand",
    "higher_order::inductor_compiled_code": "a compiled region",
    "aten::_print": "printing",
    "inductor::accumulate_grad_": "a gradient that is accumulated in its parameter",
    "inductor::resize_storage_bytes_": "a storage that is resized",
    "aten::set_": "a tensor that is given another storage",
    "fsdp::": "sharded parameters in storages that are resized",
    "_c10d_functional_autograd::": "a collective",
    "c10d::": "a collective",
    "symm_mem::": "symmetric memory",
}


def refusal(gm: GraphModule, inputs: Sequence[Any]) -> str | None:
    """Return why a graph is not run on copies of its inputs; ``None`` where it is."""
    for i, value in enumerate(inputs):
        problem = _input(value)
        if problem:
            return f"input {i} is {problem}"
    if any(isinstance(value, torch.Tensor) and value.is_cuda for value in inputs):
        if torch.cuda.is_current_stream_capturing():
            return "a CUDA graph is being captured"
    for graph in all_graphs(gm):
        for node in graph.graph.nodes:
            if problem := _node(node):
                return f"{node.name} is {problem}"
    return None


def _input(value: Any) -> str | None:
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device):
        return None
    if not isinstance(value, torch.Tensor):
        return f"no tensor or number, but {type(value).__name__}"
    if value.layout != torch.strided:
        return f"of layout {value.layout}"
    if type(value) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        return f"a subclass of Tensor, {type(value).__name__}"
    return None


def _node(node: Node) -> str | None:
    if node.op in ("call_method", "call_module"):
        return f"a {node.op}, which is no operator"
    if node.op != "call_function":
        return None
    if is_collective(node.target) and not is_known(node.target):
        return f"a collective that is not imitated: {node.target}"
    name = operator_name(node)
    if name == "higher_order::with_effects" and len(node.args) > 1 and _is_harmless(node.args[1]):
        return None
    if name == "higher_order::with_effects":
        inner = operator_of(node.args[1]) if len(node.args) > 1 else name
        return f"an effect, whose order is all that it shows: {inner}"
    for known, what in _DOES.items():
        if name == known or (known.endswith("::") and name.startswith(known)):
            return f"{what}: {name}"
    op: Any = wrapped(node) or node.target
    if is_operator(op) and not _is_harmless(op) and _torch.has_effect(op):
        return f"an effect: {name}"
    return None


def _is_harmless(op: Any) -> bool:
    """Return whether the effect of an operator is an error that it may raise."""
    return op is torch.ops.aten._linalg_check_errors.default


def operator_name(node: Node) -> str:
    """Return what a node calls, a wrapper's operator for a wrapper: ``"mylib::update"``."""
    return operator_of(wrapped(node) or node.target)


def operator_of(target: Any) -> str:
    """Return the name of what can be called in a graph."""
    if isinstance(target, _torch.higher_order_operator()):
        return f"higher_order::{target.name()}"
    return target_name(target)
