"""Launches of Triton kernels, which clone the tensors that a kernel writes."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from ... import _torch
from ...graph.alias import note_written
from ...graph.emit import Emitter, eager_values
from ..facts.candidate import Candidate, Kind
from ..facts.model import Model
from ..write.rewriter import Rewriter
from . import wrapper_results
from .record import add, read

# What a functional launch says of its clones; torch 2.15 also names the bases of the views among them.
_OF_CLONES = ("tensors_to_clone", "tensor_bases")


KIND = Kind(begins="padded")


def sees_to(node: Node) -> bool:
    """Return whether a node is a functional kernel launch."""
    return node.target is _torch.hop("triton_kernel_wrapper_functional")


def visit(model: Model, node: Node) -> bool:
    """Add the candidates of a functional kernel launch: the tensors that the kernel writes."""
    kwargs: Any = node.kwargs["kwargs"]
    names: Any = node.kwargs["tensors_to_clone"]
    kernel = _torch.triton_kernel_name(node.kwargs["kernel_idx"])  # type: ignore[arg-type]
    if node in model.premises.aside:
        wrapper_results.unsupported(model, node, kernel, {name: kwargs[name] for name in names})
        return True
    wrapper_results.placed(model, node)
    value = model.values[node]
    others = read(model, node, ((n, v) for n, v in kwargs.items() if n not in names))
    for name in names:
        operand, place = kwargs[name], model.place(kwargs[name])
        if place is not None:
            settled = wrapper_results.settled(model, operand, value[name])
            add(model, KIND, node, name, ((kernel, name),), operand, settled, (place.region,), others)
    return True


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a functional kernel launch by the launch itself, on the operands or on clones of them."""
    inner: dict[str, Any] = dict(node.kwargs["kwargs"])  # type: ignore[arg-type]
    for candidate in candidates:
        name = str(candidate.slot)
        inner[name] = rewriter.operand(node, candidate, inner[name])
    call = launch(rewriter.emitter, node, inner)
    wrapper_results.hand_out(rewriter, node, call, inner)


def launch(emitter: Emitter, node: Node, inner: dict[str, Any]) -> Node:
    """Insert the launch of a kernel before a functional one.

    Args:
        emitter: makes nodes of the graph.
        node: the functional launch.
        inner: the kernel's arguments.
    """
    kwargs = {k: v for k, v in node.kwargs.items() if k not in _OF_CLONES}
    mutation = _torch.hop("triton_kernel_wrapper_mutation")
    call = emitter.call(node, mutation, (), {**kwargs, "kwargs": inner})
    call.meta["val"] = None
    note_written(call, node.kwargs["tensors_to_clone"])  # type: ignore[arg-type]
    eager = eager_values(node)
    if eager is not None:
        call.meta["eager_input_vals"] = ((), {k: v for k, v in eager.items() if k not in _OF_CLONES})
    return call
