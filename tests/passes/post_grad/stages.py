"""A functional graph on its way through the joint and post-grad stages, without lowering; rules alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._inductor.fx_passes import joint_graph, post_grad
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes.inductor.protect import ProtectPass, RulesPass
from pytest_reinplace.passes.post_grad import Applied, find
from pytest_reinplace.passes.verify import check, copied

from ..trace import functional


def by_rule(
    name: str, fn: Callable[..., Any], *args: Any, dynamic: bool = False
) -> tuple[Applied, GraphModule]:
    """Return what one rule did to the graph of a program, which it must leave right."""
    gm, inputs = functional(fn, *args, dynamic=dynamic)
    after = copied(gm)
    applied = find(name).apply(after)
    after.graph.lint()
    assert_same(gm, after, inputs)
    return applied, after


def as_traced(name: str, fn: Callable[..., Any], *args: Any) -> Applied:
    """Return what one rule did to a graph that is what ``fn`` calls, with its writes, and must stay right."""
    gm = make_fx(fn, tracing_mode="fake")(*args)
    after = copied(gm)
    applied = find(name).stand_in(after.graph)
    after.graph.lint()
    after.recompile()
    assert_same(gm, after, list(args))
    return applied


def assert_same(before: GraphModule, after: GraphModule, inputs: list[Any]) -> None:
    found = check(before, after, inputs)
    assert found.status == "same", f"{found.text}\n{before.graph}\n{after.graph}"


def by_inductor(fn: Callable[..., Any], *args: Any, ours: bool = True, dynamic: bool = False) -> int:
    """Return how often Inductor's rules still match, which must leave the graph right when ours came before.

    Args:
        fn: the program.
        args: what it is called with.
        ours: whether our rules come before.
        dynamic: whether sizes are symbols.
    """
    gm, inputs = functional(fn, *args, dynamic=dynamic)
    after = copied(gm)
    fake = next(n.meta["val"] for n in gm.graph.nodes if isinstance(n.meta.get("val"), torch.Tensor))
    with torch._inductor.virtualized.V.set_fake_mode(fake.fake_mode):
        if ours:
            ProtectPass(stage="post_grad")(after.graph)
        joint_graph.constant_fold_uniform_value(after)
        if ours:
            ProtectPass(stage="post_grad", is_last=True)(after.graph)
            RulesPass()(after.graph)
            assert_same(gm, after, inputs)
        return sum(post_grad.pass_patterns[i].apply(after.graph) for i in (1, 2))
