"""The rewritten graph: what stands in it, its metadata, and that it changes whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import GraphError, RewriteError, analyze, reinplace
from pytest_reinplace.passes.graph.emit import Emitter
from pytest_reinplace.passes.reinplacing import rewrite
from pytest_reinplace.passes.reinplacing.kinds import functional as with_form
from pytest_reinplace.passes.reinplacing.kinds import view_scatter, wrapper_results
from pytest_reinplace.passes.reinplacing.write.rewriter import Rewriter
from pytest_reinplace.passes.strategies import random_graph
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange, functional, ops

aten = torch.ops.aten


def program(x: torch.Tensor, y: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    old = x * 2
    new = old.clone()
    ops.both(new[:2], y)
    ops.some([x, y], None)
    x[1:3] = 0
    x[i] = 4.0
    x.view(-1)[0] = 5.0
    return new + old + y.sum()


def traced(v2: bool = True, dynamic: bool = False) -> tuple[GraphModule, list[Any]]:
    return functional(program, arange(4, 4), arange(3), torch.tensor([0, 2]), v2=v2, dynamic=dynamic)


def targets(gm: GraphModule) -> list[Any]:
    return [n.target for n in gm.graph.nodes if n.op == "call_function"]


def snapshot(gm: GraphModule) -> list[Any]:
    return [
        (n.name, n.op, n.target, n.args, n.kwargs, sorted(n.meta), id(n.meta.get("val")))
        for n in gm.graph.nodes
    ]


@pytest.mark.parametrize("v2", [False, True])
def test_no_wrapper_is_left_and_the_operators_write_directly(v2: bool) -> None:
    gm, _ = traced(v2)
    report = reinplace(gm)
    left = targets(gm)
    assert torch.ops.higher_order.auto_functionalized not in left
    assert torch.ops.higher_order.auto_functionalized_v2 not in left
    assert left.count(ops.both.default) == 1 and left.count(ops.some.default) == 1
    assert left.count(aten.index_put_.default) >= 1 and aten.slice_scatter.default not in left
    assert left.count(aten.clone.default) == len(report.clones) == 1


@pytest.mark.parametrize("dynamic", [False, True])
def test_every_node_keeps_its_metadata(dynamic: bool) -> None:
    gm, inputs = traced(dynamic=dynamic)
    reinplace(gm)
    env: dict[Any, Any] = {}
    supply = iter(inputs)
    for node in gm.graph.nodes:
        if node.op == "output":
            break
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), env.__getitem__)
        if node.op == "placeholder":
            env[node] = next(supply)
        elif node.op == "get_attr":
            env[node] = getattr(gm, node.target)
            continue
        else:
            env[node] = node.target(*args, **kwargs)
        assert "val" in node.meta, node
        real, fake = env[node], node.meta["val"]
        if isinstance(real, torch.Tensor) and isinstance(fake, torch.Tensor):
            assert real.dtype == fake.dtype and real.dim() == fake.dim(), node
            if not dynamic:
                assert real.stride() == fake.stride() and real.shape == fake.shape, node
                assert real.storage_offset() == fake.storage_offset(), node
    written = [n for n in gm.graph.nodes if n.target is ops.both.default]
    assert "stack_trace" in written[0].meta


def test_views_of_one_buffer_share_their_fake_storage_afterwards() -> None:
    gm, _ = traced()
    reinplace(gm)
    for node in gm.graph.nodes:
        if node.target in (aten.view.default, aten.slice.Tensor, aten.select.int):
            source = node.args[0].meta["val"]
            assert node.meta["val"].untyped_storage()._cdata == source.untyped_storage()._cdata


def test_analyze_touches_nothing() -> None:
    gm, _ = traced()
    before = snapshot(gm)
    said = analyze(gm)
    assert snapshot(gm) == before
    assert reinplace(gm) == said


@pytest.mark.parametrize("v2", [False, True])
def test_a_fault_anywhere_leaves_the_graph_as_it_was(v2: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gm, _ = traced(v2)
    before, faults = snapshot(gm), 0
    real = Emitter.call
    while faults < 100:
        left = iter(range(faults))

        def failing(self: Emitter, *args: Any, left: Any = left, **kwargs: Any) -> Any:
            if next(left, None) is None:
                raise RuntimeError("a planted fault")
            return real(self, *args, **kwargs)

        monkeypatch.setattr(Emitter, "call", failing)
        error = failure(gm)
        if error is None:
            break
        faults += 1
        assert "a planted fault" in str(error) and "unchanged" in str(error)
        assert snapshot(gm) == before
    assert faults >= 5


STEPS = [
    *(
        (Emitter, name)
        for name in ("call", "clone", "empty", "shifted_offset", "value", "base_view", "mutable_op")
    ),
    *((Rewriter, name) for name in ("replace", "cloned")),
    *((rewrite._Walk, name) for name in ("_refresh", "_copy_operand", "_returned")),
    (view_scatter, "_write_view"),
    *((wrapper_results, name) for name in ("hand_out", "_project")),
    *((with_form, name) for name in ("rewrite", "_write")),
    (rewrite, "check"),
]


@pytest.mark.parametrize(("owner", "name"), STEPS, ids=[name for _, name in STEPS])
def test_a_fault_in_any_step_leaves_random_graphs_as_they_were(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the step and after it, at its first, second, ... time."""
    real, failed = getattr(owner, name), 0
    for seed in range(400):
        if failed > 8 or (seed >= 60 and failed):
            break
        graph = random_graph(seed)
        gm = graph.copy()
        before, moment = snapshot(gm), seed % 8
        calls = iter(range(moment // 2))

        def failing(*args: Any, calls: Any = calls, late: bool = moment % 2 == 1, **kwargs: Any) -> Any:
            is_due = next(calls, None) is None
            result = real(*args, **kwargs) if late or not is_due else None
            if is_due:
                raise RuntimeError("a planted fault")
            return result

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, failing)
            error = failure(gm)
        if error is not None:
            failed += 1
            assert "a planted fault" in str(error) and snapshot(gm) == before
            gm.graph.lint()
            assert_equivalent(graph.gm, gm, graph.inputs)
    assert failed > 0


def failure(gm: GraphModule) -> RewriteError | None:
    """Return the error of a rewrite, if there is one."""
    try:
        reinplace(gm)
    except RewriteError as error:
        return error
    return None


def test_a_graph_that_was_reinplaced_is_refused() -> None:
    gm, _ = traced()
    reinplace(gm)
    before = snapshot(gm)
    with pytest.raises(GraphError, match="functional graph.*reinplaced already"):
        reinplace(gm)
    assert snapshot(gm) == before


def test_no_graph_at_all_is_refused() -> None:
    with pytest.raises(GraphError, match="GraphModule"):
        reinplace(torch.nn.Linear(2, 2))  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="GraphModule"):
        analyze(3)  # type: ignore[arg-type]
