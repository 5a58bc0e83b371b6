"""The same call in another form: arguments by keyword, results taken from their list in other ways."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.fx import Node

from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.report import Report
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange

aten = torch.ops.aten


def rewritten(b: GraphBuilder, outputs: list[Node]) -> Report:
    """Rewrite a graph, check that it computes the same, and return what was decided."""
    gm = b.finished(outputs)
    functional = copy.deepcopy(gm)
    report = reinplace(gm)
    assert_equivalent(functional, gm, b.inputs)
    return report


def computed(b: GraphBuilder, *shape: int) -> Node:
    return b.call(aten.mul.Tensor, b.placeholder(arange(*shape)), 2)


@pytest.mark.parametrize("keywords", [False, True])
@pytest.mark.parametrize("op", [aten.index_put.default, aten._unsafe_index_put.default])
def test_index_put_takes_its_arguments_by_keyword(op: Any, keywords: bool) -> None:
    b = GraphBuilder()
    x = computed(b, 4, 3)
    index = b.call(aten.full.default, [2], 1, dtype=torch.int64)
    overlapping = b.call(aten.slice.Tensor, x, 0, 0, 2)  # it reads what it writes
    given: dict[str, Any] = {"indices": [index], "values": overlapping, "accumulate": True}
    new = b.call(op, x, **given) if keywords else b.call(op, x, *given.values())
    report = rewritten(b, [b.call(aten.mul.Tensor, new, 2)])
    assert [label.rpartition(".")[2] for label in report.reinplaced] == ["self"]
    assert [label.rpartition(".")[2] for label in report.clones] == ["values"]


@pytest.mark.parametrize("keywords", [False, True])
def test_a_scatter_takes_its_source_by_keyword(keywords: bool) -> None:
    b = GraphBuilder()
    x, source = computed(b, 4, 3), b.placeholder(arange(2, 3))
    new = (
        b.call(aten.slice_scatter.default, x, src=source, start=1, end=3)
        if keywords
        else b.call(aten.slice_scatter.default, x, source, 0, 1, 3)
    )
    assert rewritten(b, [new]).reinplaced == ["aten::slice_scatter.self"]


@pytest.mark.parametrize("keywords", [False, True])
@pytest.mark.parametrize("scattered", [False, True])
def test_an_offset_by_keyword_is_moved_along(scattered: bool, keywords: bool) -> None:
    b = GraphBuilder()
    x = b.call(aten.slice.Tensor, computed(b, 8, 8), 0, 2, 6)
    index = b.call(aten.full.default, [1], 1, dtype=torch.int64)
    new = b.call(aten.index_put.default, x, [index], b.call(aten.full.default, [1, 8], 5.0))
    named: dict[str, Any] = {"size": [4], "stride": [2], "storage_offset": 3}
    if scattered:
        named = {"src": b.call(aten.full.default, [4], 9.0), **named}
    op = aten.as_strided_scatter.default if scattered else aten.as_strided.default
    seen = b.call(op, new, **named) if keywords else b.call(op, new, *named.values())
    report = rewritten(b, [b.call(aten.mul.Tensor, seen, 2)])
    assert report.clones == [] and "aten::index_put.self" in report.reinplaced


@pytest.mark.parametrize("use", ["items", "the last item", "the list", "a call on the list", "returned"])
def test_a_list_that_is_not_only_taken_apart_stays_functional(use: str) -> None:
    b = GraphBuilder()
    added = b.call(aten._foreach_add.Scalar, [computed(b, 4), computed(b, 4)], 3)
    if use == "items":
        outputs = [b.item(added, 0), b.item(added, 1)]
    elif use == "the last item":
        outputs = [b.item(added, -1), b.item(added, 0)]
    elif use == "the list":
        outputs = [b.call(aten.cat.default, added)]
    elif use == "returned":
        outputs = [added]
    else:
        more = b.call(aten._foreach_mul.Scalar, added, 3)
        outputs = [b.item(more, 0), b.item(more, 1)]
    report = rewritten(b, outputs)
    wanted = ["aten::_foreach_add.self[0]", "aten::_foreach_add.self[1]"]
    assert report.reinplaced == (wanted if use == "items" else [])


@pytest.mark.parametrize("in_one_tensor", [False, True])
def test_numbers_of_all_elements_in_one_tensor_are_not_split(in_one_tensor: bool) -> None:
    b = GraphBuilder()
    x, one = b.placeholder(arange(4)), b.placeholder(arange(4))
    numbers = b.placeholder(torch.tensor([2.0, 5.0]))
    y = b.call(aten.mul.Tensor, one, 3)
    if in_one_tensor:  # no fake kernel takes such numbers
        value = [b.fresh(n.meta["val"]) for n in (x, y)]
        added = b.called(aten._foreach_addcmul.Tensor, ([x, y], [one, one], [one, one], numbers), value)
    else:
        added = b.call(aten._foreach_addcmul.ScalarList, [x, y], [one, one], [one, one], [2.0, 5.0])
    report = rewritten(b, [b.item(added, 0), b.item(added, 1)])
    assert report.reinplaced == ([] if in_one_tensor else ["aten::_foreach_addcmul.self[1]"])
