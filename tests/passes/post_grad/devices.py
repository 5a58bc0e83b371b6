"""Programs for a GPU, traced where there is none, and their graphs run on the CPU with all their copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg

from pytest_reinplace.passes import post_grad
from pytest_reinplace.passes.post_grad import Applied
from pytest_reinplace.passes.verify import check, copied

aten, prims = torch.ops.aten, torch.ops.prims
Tensor = torch.Tensor
GPU = torch.device("cuda", 0)
CPU = torch.device("cpu")


def traced(
    fn: Callable[..., Any],
    args: Sequence[Tensor],
    devices: Sequence[torch.device],
    table: dict[Any, Any] | None = None,
) -> GraphModule:
    """Return the graph of a program, in which tensors lie on devices that need not be there.

    Args:
        fn: the program.
        args: what it is called with, on the CPU.
        devices: where each of them lies in the graph.
        table: how operators are taken apart, by default as Inductor has it.
    """
    table = select_decomp_table() if table is None else table
    with FakeTensorMode():
        fakes = [
            torch.empty_strided(a.shape, a.stride(), dtype=a.dtype, device=d)
            for a, d in zip(args, devices, strict=True)
        ]
        return make_fx(fn, decomposition_table=table)(*fakes)


def on_cpu(gm: GraphModule) -> GraphModule:
    """Return a graph that does on the CPU what another one does on several devices."""
    after = copied(gm)
    for node in after.graph.nodes:
        if node.target in (prims.device_put.default, aten._to_copy.default):
            is_copy = node.meta["val"].device != node.args[0].meta["val"].device
            is_copy |= node.target is aten._to_copy.default
            node.target = aten.clone.default if is_copy else aten.alias.default
            node.args, node.kwargs = node.args[:1], {}
        given = {key: CPU if isinstance(value, torch.device) else value for key, value in node.kwargs.items()}
        node.kwargs = given
    for node in after.graph.nodes:
        node.meta.clear()
    after.recompile()
    return after


def assert_devices(gm: GraphModule) -> None:
    """See that every node has the value, and so the device, that running it on fake tensors gives."""
    mode = next(v.fake_mode for n in gm.graph.nodes if hasattr(v := n.meta.get("val"), "fake_mode"))
    with mode:
        for node in gm.graph.nodes:
            if node.op != "call_function":
                continue
            args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
            made, told = node.target(*args, **kwargs), node.meta.get("val")
            pairs = zip(made, told, strict=True) if isinstance(made, list | tuple) else [(made, told)]
            for one, other in pairs if told is not None else ():
                assert (one.device, one.dtype, one.shape, one.stride()) == (
                    other.device,
                    other.dtype,
                    other.shape,
                    other.stride(),
                ), f"{node.format_node()}\n{gm.graph}"


def by_rule(
    fn: Callable[..., Any],
    *args: Tensor,
    devices: Sequence[torch.device] = (GPU, GPU, GPU),
    table: dict[Any, Any] | None = None,
) -> tuple[Applied, GraphModule]:
    """Return what the rule did to a program on devices, which must stay right."""
    gm = traced(fn, args, devices[: len(args)], table)
    after = copied(gm)
    applied = post_grad.find("constructors").apply(after)
    after.graph.lint()
    assert_devices(after)
    found = check(on_cpu(gm), on_cpu(after), list(args))
    assert found.status == "same", f"{found.text}\n{gm.graph}\n{after.graph}"
    return applied, after
