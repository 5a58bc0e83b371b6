"""The copies that lowering adds: found with bytes and cause where planted, silent where there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
import torch._inductor.ir
from torch._higher_order_ops.while_loop import while_loop

from pytest_reinplace.base.lowering_copy import CAUSES, LoweringCopy
from pytest_reinplace.copies import _torch
from pytest_reinplace.copies.cause import causes
from pytest_reinplace.copies.lowering import Lowering

from .copying import PLANTED, ops
from .lowered import added, copies, lowering_of, meant

_A, _B = torch.rand(8, 8), torch.rand(8, 8)
_IMAGE = torch.rand(1, 4, 8, 8)
_KERNEL = torch.rand(4, 4, 3, 3)
_PAIR = torch.rand(1, 8, 2, 16)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_copy_is_found(name: str) -> None:
    fn, args, expected = PLANTED[name]
    found = added(fn, *args)
    assert sorted((one.label, one.nbytes, one.cause) for one in found) == sorted(expected)
    assert all(one.buffer and one.of and one.node and one.hint is not None for one in found)
    assert all(one.source is not None and "tests/plugin/copying.py:" in one.source for one in found)


ON_A_GPU = (  # where a concatenation is computed by one kernel, and copies nothing
    *("contiguous", "contiguous, computed", "contiguous, one of two", "contiguous, in a list"),
    *("contiguous, expanded", "complex", "made for each reader"),
)
SILENT_ON_A_GPU = "pointwise", "products", "attention", "softmax", "norm", "parts", "in place"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", ON_A_GPU)
def test_a_planted_copy_is_found_on_a_gpu(name: str) -> None:
    fn, args, expected = PLANTED[name]
    found = added(fn, *(arg.cuda() for arg in args))
    assert sorted((one.label, one.nbytes, one.cause) for one in found) == sorted(expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    "name", ["pointwise", "products", "attention", "softmax", "norm", "parts", "in place"]
)
def test_a_program_without_copies_is_silent_on_a_gpu(name: str) -> None:
    fn, args = SILENT[name]
    assert copies(fn, *(arg.cuda() for arg in args)) == []


def test_every_cause_has_a_sentence_that_names_the_operator() -> None:
    planted = {cause for _, _, found in PLANTED.values() for _, _, cause in found}
    assert planted == {"strides", "output", "readers", "concat", "again", "loop", "subgraph"}
    assert planted < CAUSES.keys()
    one = LoweringCopy(
        "aten::mm.self", 256, "strides", "buf0", "arg0_1", "mm", "permute", "model.py:3", hint="do"
    )
    assert one.lines() == [
        "aten::mm.self: 256 B, strides: aten::mm asks for other strides; buf0 copies arg0_1 (permute), "
        "node mm at model.py:3",
        "  hint: do",
    ]
    assert LoweringCopy.from_dict(one.to_dict()) == one


def _written(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x @ y
    x.copy_(z)
    return z.sum()


def _chosen(x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: (x @ x).relu(), lambda x: x.sin() + x.sum(), (x,))


def _turned(x: torch.Tensor) -> Any:
    return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, (y @ y) / 10), (torch.zeros((), dtype=int), x))


SILENT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "pointwise": (lambda x, y: (x * 2 + y).sin(), (_A, _B)),
    "products": (lambda x, y: (x @ y).relu() @ y.t(), (_A, _B)),
    "batch of products": (lambda x, y: torch.bmm(x.expand(3, 8, 8), y.expand(3, 8, 8)), (_A, _B)),
    "linear": (lambda x, y: torch.nn.functional.linear(x.t(), y), (_A, _B)),
    "attention": (
        lambda q: torch.nn.functional.scaled_dot_product_attention(*[q.transpose(1, 2)] * 3),
        (_PAIR,),
    ),
    "sort": (lambda x: torch.sort(x.t())[0], (_A,)),
    "sums": (lambda x: torch.cumsum(x.t(), 0), (_A,)),
    "softmax": (lambda x: x.t().softmax(0), (_A,)),
    "norm": (lambda x, y: torch.nn.functional.layer_norm(x, (8,), y[0]), (_A, _B)),
    "spectrum": (lambda x: torch.fft.rfft(x.t()).real, (_A,)),
    "padded": (lambda x: torch.nn.functional.pad(x, (0, 2, 0, 2)), (_A,)),
    "parts": (lambda x: ((x * 2)[1:3].sin(), (x * 2)[1:3]), (_A,)),
    "strided": (lambda x: torch.as_strided(x.t() * 2, (4, 4), (4, 1)), (_A,)),
    "computed and concatenated": (lambda x, y: torch.cat([x @ y, x * 2]), (_A, _B)),
    "stacked": (lambda x, y: torch.stack([x @ y, y @ x]), (_A, _B)),
    "rows": (lambda x: x[torch.tensor([1, 5])] * 2, (_A,)),
    "dropout": (lambda x: torch.nn.functional.dropout(x, 0.5), (_A,)),
    "in any layout": (lambda x: ops.any(x.t()) + 1, (_A,)),
    "contiguous already": (lambda x: ops.dense(x * 2) + 1, (_A,)),
    "transposed while computed": (lambda x: ops.dense((x * 2).t()), (_A,)),
    "channels last": (
        lambda x, w: torch.conv2d(x, w),
        (_IMAGE.to(memory_format=torch.channels_last), _KERNEL.to(memory_format=torch.channels_last)),
    ),
    "branches": (_chosen, (_A,)),
    "random": (lambda x: torch.rand_like(x) + x, (_A,)),
    "in place": (lambda x, y: x.add_(y), (_A, _B)),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_program_without_copies_is_silent(name: str) -> None:
    fn, args = SILENT[name]
    assert copies(fn, *(arg.clone() for arg in args)) == []


@pytest.mark.parametrize(
    ("fn", "labels"),
    [
        (lambda x, y: (x.clone(), y.t().contiguous()), ["aten::clone", "aten::clone"]),
        (lambda x, y: x.repeat(2, 1), ["aten::repeat"]),
        (lambda x, y: torch.cat([x, y * 2]), ["aten::cat.tensors[0]"]),
        (lambda x, y: torch.cat([(x @ y)[:2], y * 2]), ["aten::cat.tensors[0]"]),
        (lambda x, y: x.index_put((torch.tensor([1, 2]),), y[:2]), ["aten::index_put"]),
        (lambda x, y: ops.dense(x.t().contiguous()), ["aten::clone"]),
        (_written, ["aten::copy_.src"]),
        (lambda x, y: _turned(x), ["while_loop.operands[0]", "while_loop.operands[1]"]),
    ],
    ids=["clone", "repeat", "cat", "cat of a part", "index_put", "contiguous", "copy_", "loop"],
)
def test_what_the_program_copies_itself_is_told_and_not_added(fn: Any, labels: list[str]) -> None:
    args = _A.clone(), _B.clone()
    assert [one.label for one in meant(fn, *args)] == labels
    assert added(fn, *args) == []


def test_a_copy_that_the_program_means_is_told_apart_from_one_beside_it() -> None:
    found = copies(lambda x, y: ops.pair(x.t(), y.t().contiguous()), _A, _B)
    assert [(one.label, one.cause, one.meant) for one in found] == [
        ("copying::pair.x", "strides", False),
        ("aten::clone", "program", True),
    ]


def test_a_copy_in_a_subgraph_is_told_with_its_subgraph() -> None:
    fn, args, _ = PLANTED["loop"]
    found = added(fn, *args)
    assert {one.graph for one in found} == {"while_loop_body_graph_0"}
    assert " of while_loop_body_graph_0 copies " in found[0].lines()[0]


def test_symbolic_sizes_are_counted_by_their_hints() -> None:
    torch.compiler.reset()
    x = torch.rand(6, 8)
    torch._dynamo.mark_dynamic(x, 0)
    [one] = added(lambda x: ops.dense(x.t()), x)
    assert (one.label, one.nbytes) == ("copying::dense.x", 6 * 8 * 4)


def test_bytes_are_those_that_the_call_holds_more() -> None:
    from pytest_reinplace.call import peak

    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[:, ::2] @ y

    [one] = added(product, torch.rand(8, 16), _B)
    torch.compiler.reset()
    with torch.no_grad():
        fast = torch.compile(product)
        x = torch.rand(8, 16)
        fast(x, _B)
        _, held = peak.measured(lambda: fast(x, _B), "cpu")
    assert held == one.nbytes + 8 * 8 * 4


def test_without_the_notes_a_copy_is_found_and_its_cause_unknown() -> None:
    with mock.patch.object(
        _torch, "_MAKERS", (("ExternKernel", "no_such_name", "copy"), ("Gone", "x", "copy"))
    ):
        [one] = added(lambda x: ops.dense(x.t()), _A)
    assert (one.nbytes, one.cause, one.meant) == (256, "unknown", False)
    assert "why is not known" in one.lines()[0]


def test_without_the_end_of_lowering_it_is_said_what_is_missing() -> None:
    def missing(module: str, name: str = "") -> Any:
        if name == "Scheduler.codegen":
            raise _torch.SeamError("expected torch._inductor.scheduler.Scheduler.codegen, found none")
        return private(module, name)

    private = _torch.private
    with mock.patch.object(_torch, "private", missing):
        told = lowering_of(lambda x: ops.dense(x.t()), _A).told
    assert told["copies"] is None
    assert "Scheduler.codegen" in told["unlowered"]


def test_a_defect_of_ours_leaves_the_compilation_as_it_is() -> None:
    with mock.patch.object(_torch, "_only_read", side_effect=KeyError("no such thing")):
        told = lowering_of(lambda x: x + 1, _A).told
    assert told == {"copies": None, "unlowered": "a defect of pytest-reinplace: KeyError: 'no such thing'"}


def test_methods_are_put_back_as_they_were() -> None:
    ir = torch._inductor.ir
    before = [vars(ir.ExternKernel)["copy_input"], vars(ir.ConcatKernel)["realize_into"]]
    with Lowering().looking():
        during = [vars(ir.ExternKernel)["copy_input"], vars(ir.ConcatKernel)["realize_into"]]
        assert [type(one) for one in during] == [staticmethod, classmethod]
        assert during != before
    assert [vars(ir.ExternKernel)["copy_input"], vars(ir.ConcatKernel)["realize_into"]] == before


def _made(target: Any, kind: str, *calls: str, **more: Any) -> _torch.Made:
    graph = torch.fx.Graph()
    node = graph.call_function(target, (graph.placeholder("x"), graph.placeholder("y")))
    note = _torch.Note(kind, node, frozenset(), None, calls)  # type: ignore[arg-type]
    return _torch.Made("buf1", "buf0", 256, "cpu", (node,), note if calls else None, **more)


@pytest.mark.parametrize(
    ("made", "cause"),
    [
        (_made(torch.ops.aten.add_.Tensor, "write", "GraphLowering.output"), "write"),
        (_made(torch.ops.aten.copy_.default, "write", "mutate_to"), "program"),
        (_made(torch.ops.aten._to_copy.default, "copy", "DeviceCopy.create"), "device"),
        (_made(torch.ops.aten._to_copy.default, "copy", extern="DeviceCopy"), "program"),
        (_made(torch.ops.aten.add.Tensor, "copy", extern="DeviceCopy"), "device"),
        (_made(torch.ops.aten.clone.default, "copy", extern="aten.clone.default"), "program"),
        (_made(torch.ops.aten.add.Tensor, "copy", "WhileLoop._clone_aliased_inputs"), "aliased operands"),
        (_made(torch.ops.aten.permute.default, "copy"), "unknown"),
    ],
)
def test_causes_that_few_programs_have(made: _torch.Made, cause: str) -> None:
    [one] = causes([made])
    assert (one.cause, one.meant) == (cause, cause == "program")
