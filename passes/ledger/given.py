"""What graphs are called with that no caller is seen of: joint graphs of training, and subgraphs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .. import _torch
from ..errors import ReinplaceError
from ..graph.copy import all_graphs
from ..verify.concrete import Sizes, make_concrete
from ..verify.equivalence import effects
from ..verify.execution import Manner, cloned
from ..verify.seeding import seeded, undrawn
from ..verify.unrepeatable import refusal


def joint_inputs(gm: GraphModule, forward: Mapping[str, Any]) -> list[Any]:
    """Return what the joint graph of a training step is called with, given the inputs of its forward.

    Nobody calls it: it is cut into a forward and a backward. Its inputs are those of the forward, and the
    gradients of the results. A right rewrite is right for every gradient, so any numbers will do: they are
    drawn from a seed of their own, in the shape and the layout that they were traced with.

    Args:
        gm: the joint graph.
        forward: the values of the forward's placeholders, by name.

    Raises:
        ReinplaceError: one of the inputs can be neither taken nor made.
    """
    placeholders = gm.graph.find_nodes(op="placeholder")
    taken = [forward.get(node.name) for node in placeholders]
    sizes = Sizes(gm, taken)
    return [
        value if node.name in forward else _gradient(node, sizes)
        for node, value in zip(placeholders, taken, strict=True)
    ]


def _gradient(node: Node, sizes: Sizes) -> torch.Tensor:
    fake = node.meta.get("val")
    if not node.name.startswith("tangents_"):
        raise ReinplaceError(f"input {node.name} of the joint graph is none of the forward graph")
    if not isinstance(fake, torch.Tensor) or _torch.fake_mode_of([fake]) is None:
        raise ReinplaceError(f"the gradient {node.name} is no plain tensor")
    if fake.layout != torch.strided or not (fake.is_floating_point() or fake.is_complex()):
        raise ReinplaceError(f"the gradient {node.name} is of layout {fake.layout} and dtype {fake.dtype}")
    size, stride = ([int(sizes.number(n)) for n in numbers] for numbers in (fake.size(), fake.stride()))
    whole = [1 if step == 0 else n for n, step in zip(size, stride, strict=True)]
    made = torch.empty_strided(whole, stride, dtype=fake.dtype, device=fake.device)
    generator = torch.Generator().manual_seed(zlib.crc32(node.name.encode()))
    drawn_as = torch.complex64 if fake.is_complex() else torch.float32
    with torch.no_grad():
        return made.copy_(torch.randn(whole, generator=generator, dtype=drawn_as)).expand(size)


def inner_inputs(gm: GraphModule, inputs: Sequence[Any]) -> dict[str, list[Any]]:
    """Return what a graph that runs node by node calls each subgraph with first, by its name in the module.

    One that is not called, as the other branch of a condition, is missing.

    Args:
        gm: the graph, which is made to be run: symbolic sizes become numbers.
        inputs: real tensors, one value for each placeholder. They are not written.

    Raises:
        ReinplaceError: the graph cannot be run.
    """
    if reason := refusal(gm, inputs):
        raise ReinplaceError(reason)
    sizes, found = Sizes(gm, inputs), dict[str, list[Any]]()
    for graph in all_graphs(gm):
        make_concrete(graph, sizes)
    for name, module in gm.named_modules():
        if name and isinstance(module, GraphModule):
            module.register_forward_pre_hook(_noting(name, found))
    with _torch.undisturbed(), undrawn():
        effects(gm, inputs, manner=Manner(seeded, imitate=True))
    return found


def _noting(name: str, found: dict[str, list[Any]]) -> Callable[..., None]:
    def note(module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        if name not in found:
            found[name] = cloned(args)

    return note
