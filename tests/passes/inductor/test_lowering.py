"""What has fewer elements than it is made of: computed where it is used, or a loop that ends in memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._inductor import config
from torch.fx import GraphModule
from torch.nn import functional as nn

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.mend.stored_early import realize
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import analyze_graph, reinplace_graph
from pytest_reinplace.passes.verify.execution import run

from ..trace import arange, functional, ops

aten = torch.ops.aten
Tensor = torch.Tensor
Read = Callable[[Tensor], Tensor]
Program = Callable[[Tensor, Tensor], Any]

LENGTH = 1000
FEW = torch.tensor([2, 7, 1])
ONE = FEW[:1]

# Of 1,000 numbers.
FEW_OF_MANY: dict[str, Read] = {
    "index": lambda x: x[FEW],
    "gather": lambda x: x.gather(0, FEW),
    "index_select": lambda x: x.index_select(0, FEW),
    "take": lambda x: x.take(FEW),
    "pad": lambda x: nn.pad(x, (-500, -497)),
    "interpolate": lambda x: nn.interpolate(x[None, None], size=3)[0, 0],
    "avg_pool": lambda x: nn.avg_pool1d(x[None], 1, stride=400)[0],
    "one": lambda x: x[ONE],
    "one gathered": lambda x: x.gather(0, ONE),
    "one left by padding": lambda x: nn.pad(x, (-2, -997)),
}
# Of four numbers each; Inductor unrolls that.
UNROLLED: dict[str, Read] = {
    "sum": lambda x: x.view(250, 4).sum(1),
    "max": lambda x: x.view(250, 4).max(1)[0],
    "argmax": lambda x: x.view(250, 4).max(1)[1],
    "var_mean": lambda x: torch.var_mean(x.view(250, 4), 1)[1],
    "layer_norm": lambda x: nn.layer_norm(x.view(250, 4), (4,)),
    "max_pool": lambda x: nn.max_pool2d(x.view(1, 10, 100), 2),
}
# One of several results that are no reductions.
SEVERAL: dict[str, Read] = {"frexp": lambda x: torch.frexp(x)[0], "exponent": lambda x: torch.frexp(x)[1]}
LAZY = {**FEW_OF_MANY, **UNROLLED, **SEVERAL}

TOTALS: dict[str, Read] = {
    "sum": lambda x: x.sum(),
    "max": lambda x: x.max(),
    "argmax": lambda x: x.argmax(),
    "var": lambda x: x.var(),
    "mean of all": lambda x: torch.var_mean(x)[1],
    "kept": lambda x: x.amax(0, keepdim=True),
}
LOOPS: dict[str, Read] = {
    **TOTALS,
    "rows": lambda x: x.view(10, 100).sum(1),
    "var_mean": lambda x: torch.var_mean(x.view(10, 100), 1)[0],
    "max_of_rows": lambda x: x.view(10, 100).max(1)[0],
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """With more than one, Inductor calls a kernel for some of these on CPUs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    torch.set_num_threads(threads)


def stored(program: Program) -> int:
    """Return how many values are put into memory before a kernel, or a loop, writes."""
    graph = functional(program, arange(LENGTH), arange(LENGTH) + 7)[0].graph
    assert reinplace_graph(graph, Options(target=INDUCTOR)).clones == []
    return realize(graph)


def used_after(read: Read, is_own: bool = True) -> Program:
    """Return a program that uses what is read after a kernel wrote it, or wrote something else."""

    def program(x: Tensor, w: Tensor) -> Tensor:
        y = read(x)
        ops.scale(x if is_own else w, w.sum())
        return y + 1

    return program


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("is_own", [True, False])
def test_what_is_computed_where_it_is_used_is_stored_before_a_kernel_writes(name: str, is_own: bool) -> None:
    assert (stored(used_after(LAZY[name], is_own)) > 0) is is_own


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_ends_in_memory(name: str) -> None:
    assert stored(used_after(LOOPS[name])) == 0


@pytest.mark.parametrize("name", ["rows", "var_mean", "max_of_rows"])
def test_inductor_may_be_told_to_unroll_more(name: str) -> None:
    with config.patch(unroll_reductions_threshold=200):
        assert stored(used_after(LOOPS[name])) > 0


def test_a_kernel_that_has_several_results_stores_them() -> None:
    assert stored(used_after(lambda x: torch.linalg.qr(x.view(250, 4).float())[0])) == 0


def test_one_of_several_results_is_stored_although_it_is_taken_out_after_the_write() -> None:
    builder = GraphBuilder()
    x, by = builder.placeholder(arange(6, 4)), builder.placeholder(arange(6, 4) + 7)
    both = builder.call(aten.max.dim, x, 1)
    builder.graph.call_function(ops.scale.default, (x, by))
    most = builder.item(both, 0)
    builder.graph.output([builder.call(aten.neg.default, most)])
    gm = GraphModule(torch.nn.Module(), builder.graph)
    expected = run(gm, [t.clone() for t in builder.inputs])
    assert realize(gm.graph) == 1
    gm.graph.lint()
    gm.recompile()
    for one, other in zip(expected, run(gm, [t.clone() for t in builder.inputs]), strict=True):
        assert torch.equal(one, other)
    order = [node.target for node in gm.graph.nodes]
    assert order.index(operator.getitem) < order.index(aten.copy_.default) < order.index(ops.scale.default)


@pytest.mark.parametrize("is_own", [True, False])
def test_what_is_scattered_is_gathered_before(is_own: bool) -> None:
    assert stored(lambda x, w: x.scatter_(0, FEW, (x if is_own else w).gather(0, FEW - 1))) == is_own


@pytest.mark.parametrize("is_own", [True, False])
def test_places_are_gathered_before(is_own: bool) -> None:
    def program(x: Tensor, w: Tensor) -> Tensor:
        return x.index_put_(((x if is_own else w).gather(0, FEW).long(),), w[:3] * 7)

    assert stored(program) == is_own


def is_in_place(read: Read) -> bool:
    """Return whether the second store of a value is in place that is computed of all elements."""

    def program(x: Tensor, w: Tensor) -> None:
        x[5:8] = 9
        x[0:100] += read(x)

    graph = functional(program, arange(LENGTH), arange(LENGTH))[0].graph
    return analyze_graph(graph, Options(target=INDUCTOR)).clones == []


@pytest.mark.parametrize("name", [*TOTALS, "one", "one gathered", "one left by padding"])
def test_what_one_number_is_added_to_is_written_in_place(name: str) -> None:
    assert is_in_place({**TOTALS, **FEW_OF_MANY}[name])


def every(reads: dict[str, Read], *tensors: Tensor) -> list[Tensor]:
    """Read each tensor in a way of its own and use it when it is overwritten."""
    made = []
    for read, (x, w) in zip(reads.values(), zip(tensors[::2], tensors[1::2], strict=True), strict=True):
        made.append(used_after(read)(x, w))
        w[5:8] = 9
        if read(w).numel() == 1:
            w[0:100] += read(w)
        w.scatter_(0, FEW, w.gather(0, FEW - 1))
    return made


@pytest.mark.parametrize("reads", [LAZY, LOOPS], ids=["lazy", "loops"])
def test_compiled_programs_are_right(reads: dict[str, Read]) -> None:
    def program(*tensors: Tensor) -> list[Tensor]:
        return every(reads, *tensors)

    expected = [arange(LENGTH) * 0.5 + i for i in range(2 * len(reads))]
    actual = [t.clone() for t in expected]
    results = program(*expected)
    compiled = torch.compile(program, fullgraph=True, options=inductor_options())(*actual)
    for i, (one, other) in enumerate(zip((*results, *expected), (*compiled, *actual), strict=True)):
        torch.testing.assert_close(other, one, msg=lambda m, i=i: f"{i}: {m}")
