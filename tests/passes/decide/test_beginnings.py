"""Subgraphs that name bytes by an offset into their storage, and callers that do so with what they return."""

from __future__ import annotations

import pytest
import torch
from torch.fx import GraphModule, Node

from pytest_reinplace.passes import Report, reinplace
from pytest_reinplace.passes._torch import hop
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent

from ..nested import twin

aten = torch.ops.aten


def region(builder: GraphBuilder, body: GraphModule, *operands: Node) -> Node:
    """Add a call of a subgraph with one result; returns that."""
    module = builder.subgraph(body)
    output = next(n for n in body.graph.nodes if n.op == "output").args[0][0]
    made = builder.fresh(output.meta["val"])
    call = builder.called(hop("invoke_subgraph"), (module, str(module.target), *operands), (made,))
    return builder.item(call, 0)


def held(builder: GraphBuilder, outputs: list[Node]) -> Report:
    """Rewrite a graph and hold it against itself as it was."""
    gm = builder.finished(outputs)
    before = twin(gm)
    report = reinplace(gm)
    assert_equivalent(before, gm, builder.inputs)
    return report


def writer(outer: GraphBuilder, like: Node, offset: int) -> GraphModule:
    """Return a subgraph that replaces the element at an offset into its operand's storage."""
    builder = GraphBuilder(outer.fake_mode)
    x = builder.operand(like.meta["val"])
    value = builder.call(aten.full.default, [1], 7, dtype=torch.int64)
    new = builder.call(aten.as_strided_scatter.default, x, value, [1], [1], offset)
    return builder.finished([builder.call(aten.clone.default, new)])


def through(start: int, offset: int) -> Report:
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(20)[start : start + 8])
    result = region(builder, writer(builder, x, offset), x)
    return held(builder, [builder.call(aten.neg.default, result)])


def test_an_operand_that_does_not_begin_its_storage_is_not_copied_elsewhere() -> None:
    assert "invoke_subgraph.operands[0]" not in {o.label for o in through(2, 3).outcomes}


def moved_operand(offset: int) -> Report:
    """Pass on a fresh tensor that could live inside a larger buffer, at an offset."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(20))
    part = builder.call(aten.slice.Tensor, builder.call(aten.neg.default, x), 0, offset, offset + 8)
    copy = builder.call(aten.clone.default, part)
    return held(builder, [region(builder, writer(builder, copy, 3), copy)])


def test_an_operand_stays_at_the_offset_that_a_subgraph_names() -> None:
    assert "aten::clone.self" in moved_operand(4).clones


@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("asked", [False, True])
def test_an_operand_stays_at_the_offset_that_a_subgraph_asks_for(asked: bool, offset: int) -> None:
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(20))
    part = builder.call(aten.slice.Tensor, builder.call(aten.neg.default, x), 0, offset, offset + 8)
    copy = builder.call(aten.clone.default, part)
    inner = GraphBuilder(builder.fake_mode)
    operand = inner.operand(copy.meta["val"])
    number = inner.call(aten.sym_storage_offset.default if asked else aten.sym_numel.default, operand)
    body = inner.finished([inner.call(aten.add.Tensor, operand, number)])
    report = held(builder, [region(builder, body, copy)])
    assert report.reinplaced == ([] if asked and offset else ["aten::clone.self"])


def test_an_operand_that_keeps_its_offset_may_join_another_buffer() -> None:
    assert moved_operand(0).reinplaced.count("aten::clone.self") >= 1


def returned(*, absolute: bool = False, asked: bool = False, copied: bool = False) -> Report:
    """Return a part of something fresh, copied, from a subgraph; the caller reads its first element."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(8))
    inner = GraphBuilder(builder.fake_mode)
    new = inner.call(aten.neg.default, inner.operand(x.meta["val"]))
    copy = inner.call(aten.clone.default, inner.call(aten.slice.Tensor, new, 0, 3, 8))
    result = region(builder, inner.finished([copy]), x)
    if absolute:
        first = builder.call(aten.as_strided.default, result, [1], [1], 0)
    elif copied:
        first = builder.call(aten.as_strided_copy.default, result, [1], [1], 0)
    elif asked:
        number = builder.call(aten.sym_storage_offset.default, result)
        first = builder.call(aten.add.Tensor, result, number)
    else:
        first = builder.call(aten.slice.Tensor, result, 0, 0, 1)
    return held(builder, [builder.call(aten.neg.default, first)])


def test_a_result_stays_at_the_offset_that_the_caller_names() -> None:
    assert returned(absolute=True).clones == ["aten::clone.self"]


@pytest.mark.parametrize("how", ["asked", "copied"])
def test_a_result_stays_at_the_offset_that_the_caller_goes_by(how: str) -> None:
    assert "aten::clone.self" in returned(**{how: True}).clones


def test_a_result_may_move_when_nobody_names_its_offset() -> None:
    assert returned(absolute=False).clones == []


def test_a_wrapper_that_stays_finds_its_operand_where_it_was() -> None:
    """The operand of the wrapper that is set aside is a copy, too, which would begin at offset 0."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(20)[2:10])
    first = builder.v1(adversary.operator("bump"), x=x)[-1]
    other = builder.call(aten.neg.default, first)
    second = builder.v1(adversary.operator("mix"), x=first, other=first)[-1]
    result = region(builder, writer(builder, second, 3), second)
    report = held(builder, [result, other])
    assert f"{adversary.NAMESPACE}::mix.x" in report.clones


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("names", [False, True])
def test_a_functional_copy_that_a_subgraph_is_given_begins_where_it_did(names: bool, moves: bool) -> None:
    """It begins where the tensor does that it replaces, which could come to lie elsewhere."""
    builder = GraphBuilder()
    x, source = builder.placeholder(torch.arange(20)), builder.placeholder(torch.arange(8) + 50)
    start = 4 if moves else 0
    part = builder.call(aten.slice.Tensor, builder.call(aten.neg.default, x), 0, start, start + 8)
    like = builder.call(aten.clone.default, part)
    kept = builder.call(aten.copy.default, like, source)
    body = writer(builder, kept, 3) if names else negated(builder, kept)
    result = region(builder, body, kept)
    report = held(builder, [builder.call(aten.neg.default, result), builder.call(aten.neg.default, like)])
    clones = [o for o in report.outcomes if o.label == "aten::clone.self" and not o.graph]
    assert [o.reinplaced for o in clones] == [not (names and moves)]


def negated(outer: GraphBuilder, like: Node) -> GraphModule:
    """Return a subgraph that goes by no offset."""
    builder = GraphBuilder(outer.fake_mode)
    return builder.finished([builder.call(aten.neg.default, builder.operand(like.meta["val"]))])
