"""Who goes by where a value begins, or by its strides, is told the same when the value lies elsewhere."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.report import Report
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange

aten, prims = torch.ops.aten, torch.ops.prims


def rewritten(b: GraphBuilder, outputs: list[Node]) -> Report:
    """Rewrite a graph, check that it computes the same, and return what was decided."""
    gm = b.finished(outputs)
    functional = copy.deepcopy(gm)
    b.graph = gm.graph
    report = reinplace(gm)
    assert_equivalent(functional, gm, b.inputs)
    return report


def part(b: GraphBuilder, narrow: bool) -> Node:
    """Return some rows, or some columns, of a computed tensor: it has room behind its beginning."""
    whole = b.call(aten.mul.Tensor, b.placeholder(arange(8, 8)), 2)
    return b.call(aten.slice.Tensor, whole, 1 if narrow else 0, 2, 6)


def doubled(b: GraphBuilder, node: Node) -> Node:
    return b.call(aten.mul.Tensor, node, 2)


def put(b: GraphBuilder, narrow: bool) -> Node:
    index = b.call(aten.full.default, [1], 1, dtype=torch.int64)
    into = part(b, narrow)
    value = b.call(aten.full.default, [1, into.meta["val"].shape[1]], 5.0)
    return b.call(aten.index_put.default, into, [index], value)


Use = Callable[[GraphBuilder, Node], Node]

USES: dict[str, Use] = {
    "as_strided": lambda b, p: b.call(aten.as_strided.default, p, [2], [4]),
    "as_strided from an offset": lambda b, p: b.call(aten.as_strided.default, p, [2], [4], storage_offset=1),
    "as_strided_copy": lambda b, p: b.call(aten.as_strided_copy.default, p, [2], [4]),
    "as_strided_copy from an offset": lambda b, p: b.call(aten.as_strided_copy.default, p, [2], [4], 1),
    "reshape_alias": lambda b, p: b.call(aten._reshape_alias.default, p, [p.meta["val"].numel()], [1]),
    "offset": lambda b, p: b.call(aten.add.Tensor, p, b.call(aten.sym_storage_offset.default, p)),
    "stride": lambda b, p: b.call(aten.add.Tensor, p, b.call(aten.sym_stride.int, p, 0)),
    "contiguous": lambda b, p: b.call(aten.add.Tensor, p, b.call(aten.is_contiguous.default, p)),
    "size": lambda b, p: b.call(aten.add.Tensor, p, b.call(aten.sym_size.int, p, 0)),
}


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("use", USES)
def test_a_part_of_a_tensor_is_written_only_where_nobody_can_tell(use: str, narrow: bool) -> None:
    b = GraphBuilder()
    report = rewritten(b, [doubled(b, USES[use](b, put(b, narrow)))])
    moves_along = {
        "as_strided",
        "as_strided from an offset",
        "reshape_alias",
        "stride",
        "contiguous",
    }
    legal = use == "size" or (not narrow and use in moves_along)
    assert report.reinplaced == (["aten::index_put.self"] if legal else [])


PRIMS: dict[str, Use] = {
    "transpose": lambda b, x: b.call(prims.transpose.default, x, [1, 0]),
    "collapse_view": lambda b, x: b.call(prims.collapse_view.default, x, 0, 1),
    "split_dim": lambda b, x: b.call(prims.split_dim.default, x, 0, 2),
    "broadcast_in_dim": lambda b, x: b.call(prims.broadcast_in_dim.default, x, [2, 8, 8], [1, 2]),
    "view_of": lambda b, x: b.call(prims.view_of.default, x),
}


@pytest.mark.parametrize("view", PRIMS)
@pytest.mark.parametrize("later", [False, True])
def test_a_view_of_prims_is_a_view(view: str, later: bool) -> None:
    b = GraphBuilder()
    whole = doubled(b, b.placeholder(arange(8, 8)))
    seen = PRIMS[view](b, whole)
    index = b.call(aten.full.default, [1], 1, dtype=torch.int64)
    early = doubled(b, seen)
    new = b.call(aten.index_put.default, whole, [index], b.call(aten.full.default, [1, 8], 5.0))
    gm = b.finished([new, doubled(b, seen) if later else early])
    functional = copy.deepcopy(gm)
    report = reinplace(gm, order="keep")
    assert_equivalent(functional, gm, b.inputs)
    assert ("aten::index_put.self" in report.reinplaced) is not later


@pytest.mark.parametrize("known", [False, True])
def test_a_view_of_prims_by_strides_is_moved_along_where_its_bytes_are_known(known: bool) -> None:
    """Its schema says that it writes; FakeTensor's cache answers with a tensor that shares nothing."""
    b = GraphBuilder()
    new = put(b, narrow=False)
    value = new.meta["val"].as_strided([2], [4], 1)
    seen = b.called(prims.as_strided.default, (new, [2], [4], 1), value if known else b.fresh(value.clone()))
    report = rewritten(b, [doubled(b, seen)])
    assert report.reinplaced == (["aten::index_put.self"] if known else [])


@pytest.mark.parametrize("narrow", [False, True])
def test_a_copy_by_strides_reads_bytes_beside_its_operand(narrow: bool) -> None:
    b = GraphBuilder()
    whole = b.call(aten.mul.Tensor, b.placeholder(arange(8, 8)), 2)
    low = b.call(aten.slice.Tensor, whole, 0, 0, 2)
    index = b.call(aten.full.default, [1], 7, dtype=torch.int64)
    value = b.call(aten.full.default, [1, 8], 5.0)
    new = b.call(aten.index_put.default, whole, [index], value)
    seen = b.call(aten.as_strided_copy.default if narrow else aten.view_copy.default, low, *(
        ([8, 8], [8, 1]) if narrow else ([16],)))  # fmt: skip
    report = rewritten(b, [seen, doubled(b, new)])
    assert report.reinplaced == ([] if narrow else ["aten::index_put.self"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
@pytest.mark.parametrize("named", [False, True])
def test_a_functional_copy_begins_where_its_destination_does(named: bool, dtype: torch.dtype) -> None:
    b = GraphBuilder()
    source = b.placeholder(arange(4, 8).to(dtype))
    new = put(b, narrow=False)
    copied = b.call(aten.copy.default, new, source)
    seen = b.call(aten.as_strided.default, copied, [4], [2], 3) if named else b.call(aten.t.default, copied)
    report = rewritten(b, [doubled(b, seen), copied, doubled(b, new)])
    assert ("aten::index_put.self" in report.reinplaced) is not named


@pytest.mark.parametrize("row", [0, 2])
def test_a_functional_copy_into_a_part_of_an_input_begins_where_the_part_does(row: int) -> None:
    b = GraphBuilder()
    into = b.call(aten.slice.Tensor, b.placeholder(arange(8, 8)), 0, row, row + 4)
    source = doubled(b, b.placeholder(arange(4, 8)))
    copied = b.call(aten.copy.default, into, source)
    seen = b.call(aten.as_strided.default, copied, [4], [2], 8 * row + 3)
    rewritten(b, [doubled(b, seen)])
    assert bool(b.graph.find_nodes(op="call_function", target=aten.copy.default)) is bool(row)


@pytest.mark.parametrize("row", [0, 2])
def test_such_a_copy_is_not_written_where_its_fake_value_says(row: int) -> None:
    """Where FakeTensor answers from its cache, the fake value begins at offset 0."""
    b = GraphBuilder()
    into = b.call(aten.slice.Tensor, b.placeholder(arange(8, 8)), 0, row, row + 4)
    source = doubled(b, b.placeholder(arange(4, 8)))
    copied = b.called(aten.copy.default, (into, source), b.fresh(source.meta["val"]))
    seen = b.call(aten.as_strided.default, copied, [2], [1], 8 * row + 9)
    line = b.call(aten.full.default, [8], 5.0)
    new = b.call(aten.select_scatter.default, copied, line, 0, 1)
    report = rewritten(b, [new, doubled(b, seen)])
    assert ("aten::select_scatter.self" in report.reinplaced) is (row == 0)


@pytest.mark.parametrize("named", [False, True])
def test_offsets_are_not_moved_along_by_a_symbolic_number(named: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        copied = (x * 2)[y.shape[0] :].clone()
        return aten.as_strided.default(copied, [2], [1], 1) * 1 if named else copied[:2] * 1

    inputs = [arange(20), arange(3)]
    functional = make_fx(program, tracing_mode="symbolic")(*inputs)
    gm = copy.deepcopy(functional)
    report = reinplace(gm)
    assert_equivalent(functional, gm, inputs)
    assert report.reinplaced == ([] if named else ["aten::clone.self"])


@pytest.mark.parametrize("hidden", [False, True])
def test_a_result_laid_out_anew_is_followed_where_a_schema_hides_an_alias(hidden: bool) -> None:
    b = GraphBuilder()
    new = put(b, narrow=True)
    index = b.call(aten.full.default, [1], 2, dtype=torch.int64)
    if hidden:  # what dropout returns is its operand, and its schema does not say so
        kept = b.call(aten.dropout.default, new, 0.5, False)
    else:
        kept = doubled(b, new)
    newer = b.call(aten.index_put.default, new, [index], b.call(aten.full.default, [1, 4], 7.0))
    report = rewritten(b, [doubled(b, kept), doubled(b, newer)])
    assert report.reinplaced.count("aten::index_put.self") == (0 if hidden else 2)
