"""What a program owns: buffers and constants of exported programs, and what a backward graph is given."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.decomposition import select_decomp_table
from torch.fx import GraphModule

from pytest_reinplace.passes import Reason, Report, inductor_options, observe, reinplace
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange, ops

Tensor = torch.Tensor

aten = torch.ops.aten


class Layer(nn.Module):
    """A layer with a cache that it writes, a constant that it reads, and a parameter."""

    cache: Tensor

    def __init__(self, *, reads_old: bool = False) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 4))
        self.weight = nn.Parameter(torch.ones(4))
        self.constant = torch.arange(4.0)
        self.reads_old = reads_old

    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        old = self.cache.clone() if self.reads_old else self.weight
        ops.scale(self.cache[0], x)
        self.cache[i] = x
        scaled = self.constant * x
        ops.scale(scaled, x)
        return self.cache.sum() + self.weight * scaled + self.constant + old


def given() -> tuple[Tensor, Tensor]:
    return arange(4) + 1, torch.tensor([1])


def exported(layer: nn.Module) -> Any:
    with torch.no_grad():
        return torch.export.export(layer, given()).run_decompositions()


@pytest.mark.parametrize("reads_old", [False, True])
def test_a_buffer_is_written_and_a_constant_is_not(reads_old: bool) -> None:
    gm: Any = exported(Layer(reads_old=reads_old)).module()
    assert gm.graph.find_nodes(op="get_attr", target="cache")
    specification = copy.deepcopy(gm)
    report = reinplace(gm)
    # with the old value returned there is one copy, of the cache: the one in the program
    assert report.clones == (["aten::clone.self"] if reads_old else [])
    assert not gm.graph.find_nodes(op="call_function", target=aten.copy_.default)
    layer = Layer(reads_old=reads_old)
    with torch.no_grad():
        for _ in range(2):
            assert torch.equal(gm(*given()), layer(*given()))
            specification(*given())
    assert torch.equal(gm.cache, layer.cache) and torch.equal(specification.cache, layer.cache)
    assert torch.equal(gm.constant, torch.arange(4.0)) and torch.equal(gm.weight, torch.ones(4))


def test_a_lifted_program_returns_its_buffers_and_keeps_them() -> None:
    """There the new content is an output: the caller writes it back, and until then it has the old one."""
    report = reinplace(exported(Layer()).graph_module)
    assert [(o.label, o.reason) for o in report.outcomes if not o.reinplaced] == [
        ("reinplace_test::scale.x", Reason.INPUT_KEPT)
    ]


def test_ahead_of_time_inductor_gets_buffers_written_in_place() -> None:
    """What comes after the pass, a C++ compiler and a package, is Inductor's own."""

    class _Seen(Exception):
        pass

    reports: list[Report] = []

    def stop(report: Report, graph: torch.fx.Graph) -> None:
        reports.append(report)
        assert graph.find_nodes(op="get_attr", target="cache")
        raise _Seen

    with torch.no_grad():
        program = torch.export.export(Layer(), given())
    with observe(stop), pytest.raises(Exception, match="_Seen"):
        torch._inductor.aoti_compile_and_package(program, inductor_configs=inductor_options())
    assert reports[0].clones == [] and "reinplace_test::scale.x" in reports[0].reinplaced


def fetched_twice(*, alias: bool, writes_back: bool) -> tuple[GraphModule, list[Any]]:
    """Write a buffer that another node takes from the module once more, perhaps by another name."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(4))
    tensor = torch.arange(8).view(2, 4)
    first = builder.buffer(tensor)
    if alias:
        second = builder.buffer(tensor)
    else:
        second = builder.graph.get_attr(str(first.target))
        second.meta["val"] = builder.fake_mode.from_tensor(tensor.clone())
    new = builder.v1(adversary.operator("mix"), x=first, other=x)[-1]
    read = builder.call(aten.mul.Tensor, second, 3)
    more = builder.call(aten.add.Tensor, new, 1)
    if writes_back:
        builder.call(aten.copy_.default, first, new)
    return builder.finished([read, more]), builder.inputs


@pytest.mark.parametrize("alias", [False, True], ids=["one name", "two names"])
@pytest.mark.parametrize("writes_back", [False, True])
def test_two_nodes_may_take_the_same_buffer(alias: bool, writes_back: bool) -> None:
    gm, inputs = fetched_twice(alias=alias, writes_back=writes_back)
    report = reinplace(gm, order="keep")
    # Written back, the buffer is worth a copy of the old value for its reader; else it is kept.
    assert [(o.added, o.reason) for o in report.outcomes if not o.reinplaced] == [
        (writes_back, Reason.STILL_READ)
    ]
    assert_equivalent(fetched_twice(alias=alias, writes_back=writes_back)[0], gm, inputs)


def test_constants_are_never_written() -> None:
    def make() -> tuple[GraphModule, list[Any]]:
        builder = GraphBuilder()
        x = builder.placeholder(torch.arange(4))
        constant = builder.buffer(torch.arange(4))
        new = builder.v1(adversary.operator("mix"), x=constant, other=x)[-1]
        return builder.finished([new]), builder.inputs

    gm, inputs = make()
    assert [o.reason for o in reinplace(gm).outcomes] == [Reason.INPUT_KEPT]
    assert_equivalent(make()[0], gm, inputs)


# -- backward graphs ------------------------------------------------------------------------------------


class Scaled(torch.autograd.Function):
    """Writes what it computed, and its gradient, in place with a custom operator."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, by: Tensor) -> Tensor:
        made = x * 2
        ops.scale(made, by)
        ctx.save_for_backward(made, by)
        return made.sin()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        made, by = ctx.saved_tensors
        own = made.clone()
        ops.scale(own, by)
        grad = grads[0] * own
        ops.scale(grad, by)
        return grad, None


def program(x: Tensor, by: Tensor) -> Tensor:
    return Scaled.apply(x, by).sum()  # type: ignore[no-any-return, no-untyped-call]


def graphs() -> tuple[list[tuple[GraphModule, GraphModule, Report, list[Any]]], Tensor]:
    """Return the forward and the backward graph: as traced, rewritten, the report and the inputs."""
    found: list[tuple[GraphModule, GraphModule, Report, list[Any]]] = []

    def compiler(gm: GraphModule, _: Any) -> Any:
        before = copy.deepcopy(gm)
        report = reinplace(gm)

        def run(*args: Any) -> Any:
            found.append((before, gm, report, [a.clone() if isinstance(a, Tensor) else a for a in args]))
            return gm(*args)

        return run

    torch._dynamo.reset()
    backend = aot_autograd(
        fw_compiler=compiler, decompositions=select_decomp_table(), keep_inference_input_mutations=True
    )
    x = (arange(4, 4) + 1).requires_grad_()
    torch.compile(program, backend=backend, fullgraph=True)(x, arange(4)).backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    return found, x.grad


def test_what_a_backward_graph_is_given_is_kept() -> None:
    """Whether a saved tensor is used once more only the caller knows: its clone stays, and is written."""
    found, grad = graphs()
    assert len(found) == 2
    for before, after, _, inputs in found:
        assert_equivalent(before, after, inputs)
    forward, backward = found[0][2], found[1][2]
    assert forward.clones == []
    assert [(o.label, o.reason) for o in backward.outcomes if not o.reinplaced] == [
        ("aten::clone.self", Reason.OVERWRITTEN)
    ]
    assert backward.reinplaced == ["reinplace_test::scale.x"] * 2
    x = (arange(4, 4) + 1).requires_grad_()
    program(x, arange(4)).backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    torch.testing.assert_close(grad, x.grad)


def test_inductor_runs_the_backward_graph() -> None:
    torch._dynamo.reset()
    reports: list[Report] = []
    x, y = ((arange(4, 4) + 1).requires_grad_() for _ in range(2))
    with observe(lambda report, _: reports.append(report)):
        options = {**inductor_options(), "fx_graph_cache": False}
        torch.compile(program, fullgraph=True, options=options)(x, arange(4)).backward()  # type: ignore[no-untyped-call]
    program(y, arange(4)).backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None and y.grad is not None
    torch.testing.assert_close(x.grad, y.grad)
    assert len(reports) == 2
