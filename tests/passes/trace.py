"""Functional graphs for tests: what AOTAutograd hands to Inductor, and custom operators to put into them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.config as inductor_config
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.decomposition import select_decomp_table
from torch.fx import GraphModule
from torch.library import custom_op

Tensor = torch.Tensor


@custom_op("reinplace_test::scale", mutates_args=("x",))
def scale(x: Tensor, by: Tensor) -> None:
    """Write ``x`` first, then read ``by``: a kernel that shows when the two share bytes."""
    x.mul_(3)
    x.add_(by.sum() if by.shape != x.shape else by)


@custom_op("reinplace_test::both", mutates_args=("x", "y"))
def both(x: Tensor, y: Tensor) -> None:
    """Write two tensors, the first before the second is read."""
    x.add_(1)
    y.mul_(2).add_(x.sum())


@custom_op("reinplace_test::some", mutates_args=("xs", "extra"))
def some(xs: list[Tensor], extra: Tensor | None) -> None:
    """Write a list of tensors and perhaps one more."""
    for i, x in enumerate(xs):
        x.add_(i + 1)
    if extra is not None:
        extra.mul_(2)


@custom_op("reinplace_test::update", mutates_args=("cache",))
def update(cache: Tensor, value: Tensor) -> Tensor:
    """Write a cache and return something new."""
    cache[0] = value
    return cache.sum(0)


@update.register_fake
def _(cache: Tensor, value: Tensor) -> Tensor:
    return torch.empty_like(cache[0])


ops = torch.ops.reinplace_test


def functional(
    fn: Callable[..., Any], *args: Any, v2: bool = True, dynamic: bool = False
) -> tuple[GraphModule, list[Any]]:
    """Return the functional graph of ``fn`` and the real inputs that the graph takes."""
    found: list[tuple[GraphModule, list[Any]]] = []

    def keep(gm: GraphModule, example_inputs: Any) -> Any:
        graph = copy.copy(gm)
        graph.graph = copy.deepcopy(gm.graph)

        def run(*inputs: Any) -> Any:
            found.append((graph, [i.clone() if isinstance(i, Tensor) else i for i in inputs]))
            return gm(*inputs)

        return run

    torch._dynamo.reset()
    backend = aot_autograd(
        fw_compiler=keep, decompositions=select_decomp_table(), keep_inference_input_mutations=True
    )
    with inductor_config.patch(enable_auto_functionalized_v2=v2), torch.no_grad():
        torch.compile(fn, backend=backend, fullgraph=True, dynamic=dynamic)(*args)
    assert len(found) == 1, f"expected one graph, got {len(found)}"
    return found[0]


def arange(*shape: int) -> Tensor:
    """Return small distinct floats."""
    count = 1
    for n in shape:
        count *= n
    return torch.arange(count, dtype=torch.float32).reshape(shape)
