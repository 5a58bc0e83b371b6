"""Operators whose fake tensors have other strides than their results: offsets name other elements then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import Report
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.ops.true_strides import is_mistold
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.facts.target import NODE_BY_NODE
from pytest_reinplace.passes.reinplacing.run import reinplace_graph
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange

aten = torch.ops.aten
MAKERS: dict[str, Callable[[GraphBuilder, Node], Node]] = {
    "index_fill": lambda b, x: b.call(aten.index_fill.int_Scalar, x, 0, b.call(aten.arange.default, 1), 7),
    "roll": lambda b, x: b.call(aten.roll.default, x, [1], [0]),
    "of index_fill": lambda b, x: b.call(aten.mul.Tensor, MAKERS["index_fill"](b, x), 2),
    "mul": lambda b, x: b.call(aten.mul.Tensor, x, 2),
}


# Of a dense operand index_fill keeps the strides, and says so; roll is contiguous, and says so.
TOLD = ("mul", "roll", "contiguous roll", "dense index_fill")
ALL = [*MAKERS, *TOLD[2:]]


def made(maker: str) -> tuple[GraphBuilder, Node, Node]:
    """Return a value, of a transposed part of an input, and rows of it."""
    b = GraphBuilder()
    given = b.placeholder(arange(8, 8)[:4, :6])
    how, _, name = maker.rpartition(" ")
    if how == "contiguous":
        operand = b.placeholder(arange(6, 4))
    elif how == "dense":
        operand = b.call(aten.permute.default, b.placeholder(arange(4, 6)), [1, 0])
    else:
        operand = b.call(aten.permute.default, given, [1, 0])
    value = MAKERS[maker if maker in MAKERS else name](b, operand)
    return b, value, b.item(b.call(aten.split.Tensor, value, 3, 0), 0)


def is_told(maker: str) -> bool:
    """Return whether a value has the strides that its fake tensor tells, which depends on the torch."""
    b, value, _ = made(maker)
    (real,) = b.finished([value])(*b.inputs)
    told: bool = real.stride() == value.meta["val"].stride()
    assert told or maker not in TOLD
    return told


def held(b: GraphBuilder, *outputs: Node, lowered: bool = False) -> Report:
    """Rewrite the graph, as Inductor or as a run node by node would have it, and hold it against itself."""
    gm = b.finished([*outputs])
    rewritten = torch.fx.GraphModule(gm, torch.fx.Graph())
    rewritten.graph.output(rewritten.graph.graph_copy(gm.graph, {}))
    report = reinplace_graph(rewritten.graph, Options(target=INDUCTOR if lowered else NODE_BY_NODE))
    rewritten.recompile()
    assert_equivalent(gm, rewritten, b.inputs)
    return report


@pytest.mark.parametrize("maker", ALL)
def test_a_wrapper_that_names_bytes_is_left_as_it_is(maker: str) -> None:
    b, value, rows = made(maker)
    # Of the fake strides these are elements of the rows; of the real ones, one of another row.
    view = b.call(aten.as_strided.default, rows, [4], [rows.meta["val"].stride(1)], 0)
    new = b.v2(adversary.operator("bump"), {"x": (rows, view)})[-1]
    report = held(b, b.call(aten.slice_scatter.default, value, new, 0, 0, 3))
    assert ("reinplace_adversary::bump.x" in report.reinplaced) is is_told(maker)


# What Inductor computes of another value has the strides that are told.
@pytest.mark.parametrize(
    ("maker", "lowered"), [(m, of) for m in ALL for of in (True, False) if not of or m != "of index_fill"]
)
def test_rows_that_are_named_in_a_clone_keep_the_clone(maker: str, lowered: bool) -> None:
    b, value, rows = made(maker)
    new = b.call(aten.clone.default, rows)
    seen = b.call(aten.as_strided.default, new, [2, 2], [1, 2], 0)
    report = held(b, b.call(aten.neg.default, seen), b.call(aten.sum.default, value), lowered=lowered)
    assert ("aten::clone.self" in report.clones) is (lowered and not is_told(maker))


@pytest.mark.parametrize("maker", ALL)
def test_a_scatter_that_names_bytes_copies_what_it_writes_into(maker: str) -> None:
    b, value, rows = made(maker)
    source = b.placeholder(arange(4))
    strides = [rows.meta["val"].stride(1)]
    new = b.call(aten.as_strided_scatter.default, rows, source, [4], strides, 0)
    report = held(b, b.call(aten.slice_scatter.default, value, new, 0, 0, 3))
    assert ("aten::as_strided_scatter.self" in report.reinplaced) is is_told(maker)


@pytest.mark.parametrize("dims", [[0], [1], [3]])
@pytest.mark.parametrize("is_channels_last", [True, False])
def test_a_rolled_image_is_laid_out_as_its_parts_are(dims: list[int], is_channels_last: bool) -> None:
    """Its fake tensor is contiguous; what a cat of channels-last parts gives is not."""
    memory_format = torch.channels_last if is_channels_last else torch.contiguous_format
    b = GraphBuilder()
    image = b.placeholder(arange(2, 3, 4, 4).contiguous(memory_format=memory_format))
    value = b.call(aten.roll.default, image, [1], dims)
    rows = b.item(b.call(aten.split.Tensor, value, 1, 0), 0)
    view = b.call(aten.as_strided.default, rows, [4], [1], 0)
    new = b.v2(adversary.operator("bump"), {"x": (rows, view)})[-1]
    report = held(b, b.call(aten.slice_scatter.default, value, new, 0, 0, 1))
    assert ("reinplace_adversary::bump.x" in report.reinplaced) is not is_channels_last
    assert is_mistold(value) is is_channels_last


def test_an_image_that_is_permuted_otherwise_is_rolled_into_a_contiguous_one() -> None:
    b = GraphBuilder()
    image = b.call(aten.permute.default, b.placeholder(arange(2, 3, 5, 4)), [0, 1, 3, 2])
    value = b.call(aten.roll.default, image, [1], [3])
    (real,) = b.finished([value])(*b.inputs)
    assert real.is_contiguous() and not is_mistold(value)


@pytest.mark.parametrize("mode", ["symbolic", "fake"])
def test_strides_of_symbolic_sizes_are_not_told(mode: Literal["symbolic", "fake"]) -> None:
    """To compare them would add a guard to the graph."""
    gm = make_fx(lambda x: aten.roll.default(x, [1], [0]), tracing_mode=mode)(arange(6, 4))
    (rolled,) = gm.graph.find_nodes(op="call_function", target=aten.roll.default)
    assert is_mistold(rolled) is (mode == "symbolic")


@pytest.mark.parametrize("is_contiguous", [True, False])
def test_an_operator_that_lies_is_told_of_symbolic_sizes_where_all_is_contiguous(is_contiguous: bool) -> None:
    x = arange(6, 4) if is_contiguous else arange(4, 6).t()
    gm = make_fx(aten.copysign.Tensor, tracing_mode="symbolic")(x, x)
    (made,) = gm.graph.find_nodes(op="call_function", target=aten.copysign.Tensor)
    assert is_mistold(made) is not is_contiguous
    assert made.meta["val"].fake_mode.shape_env.guards == []


@pytest.mark.parametrize("operand", ["contiguous", "transposed"])
@pytest.mark.parametrize("result", ["contiguous", "transposed"])
def test_an_operator_that_lies_is_told_where_nothing_has_other_strides(operand: str, result: str) -> None:
    values = {"contiguous": torch.empty(6, 4), "transposed": torch.empty(4, 6).t()}
    graph = torch.fx.Graph()
    given = graph.placeholder("x")
    made = graph.call_function(aten.copysign.Tensor, (given, given))
    given.meta["val"], made.meta["val"] = values[operand], values[result]
    assert is_mistold(made) is (operand != result)


def test_what_is_only_read_may_have_any_strides() -> None:
    b, value, _ = made("index_fill")
    base = b.call(aten.mul.Tensor, b.placeholder(arange(6, 4)), 2)
    view = b.call(aten.as_strided.default, base, [4], [1], 2)
    new = b.v2(adversary.operator("mix"), {"x": (base, view)}, other=b.call(aten.select.int, value, 0, 0))[-1]
    report = held(b, b.call(aten.neg.default, new))
    assert "reinplace_adversary::mix.x" in report.reinplaced


@pytest.mark.parametrize("is_told", [True, False])
def test_index_fill_of_a_result_laid_out_anew(is_told: bool) -> None:
    """It keeps the order of dimensions: another one than written where the new layout has another."""
    b = GraphBuilder()
    x = b.placeholder(arange(8, 8)[::2, ::2] if is_told else arange(8, 8)[::2, ::2].t())
    new = b.call(aten.masked_scatter.default, x, b.call(aten.gt.Scalar, x, 9), b.call(aten.neg.default, x))
    rows = b.call(aten.arange.default, 1)
    filled = b.call(aten.index_fill.int_Scalar, new, 0, rows, 7)
    b.call(aten.copy_.default, x, new)
    report = held(b, b.call(aten.sum.default, b.call(aten.view.default, filled, [16])))
    assert ("aten::masked_scatter.self" in report.reinplaced) is is_told
