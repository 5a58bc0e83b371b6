"""View scatters begin where their operands do, whatever is told, and offsets name their bytes by that."""

from __future__ import annotations

import pytest
import torch
from torch.fx import Node

from pytest_reinplace.passes import Report, reinplace
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent

from ..nested import is_hidden, twin
from ..trace import arange

aten = torch.ops.aten
SCATTER = "aten::slice_scatter.self"


class Part:
    """A part of a computed buffer, from its third element on, and a scatter into that part."""

    def __init__(
        self, *, is_told: bool, sizes: tuple[int, ...] = (4,), strides: tuple[int, ...] = (1,)
    ) -> None:
        self.b, width = GraphBuilder(), sizes[-1]
        self.buffer = self.b.call(aten.mul.Tensor, self.b.placeholder(arange(12)), 2.0)
        if len(sizes) == 1:
            self.part = self.b.call(aten.slice.Tensor, self.buffer, 0, 2, 2 + width)
        else:
            self.part = self.b.call(aten.as_strided.default, self.buffer, [*sizes], [*strides], 2)
        source = self.b.call(aten.full.default, [*sizes[:-1], 1], 7.0)
        args = self.part, source, len(sizes) - 1, 0, 1
        self.new: Node = self.b.call(aten.slice_scatter.default, *args)
        if not is_told:
            self.new.meta["val"] = self.b.copied(self.new.meta["val"])

    def named(self, offset: int) -> Node:
        """Name two elements by an offset into the storage."""
        return self.b.call(aten.as_strided.default, self.new, [2], [1], offset)

    def held(self, *outputs: Node) -> Report:
        self.gm = self.b.finished([*outputs])
        before = twin(self.gm)
        report = reinplace(self.gm)
        assert_equivalent(before, self.gm, self.b.inputs)
        return report


@pytest.mark.parametrize("sizes", [(4,), (1, 4)])
@pytest.mark.parametrize("is_told", [True, False])
def test_offsets_into_what_is_scattered_count_from_the_operands_storage(
    is_told: bool, sizes: tuple[int, ...]
) -> None:
    """A stride of 0 repeats nothing where there is one element."""
    part = Part(is_told=is_told, sizes=sizes, strides=(0, 1)[-len(sizes) :])
    report = part.held(part.b.call(aten.neg.default, part.named(2)))
    assert report.reinplaced == [SCATTER]


@pytest.mark.parametrize("is_told", [True, False])
def test_nothing_is_written_where_what_is_told_cannot_be_corrected(is_told: bool) -> None:
    """What a subgraph returns is not asked again."""
    part = Part(is_told=is_told)
    inner = GraphBuilder(part.b.fake_mode)
    total = inner.finished([inner.call(aten.sum.default, inner.operand(part.new.meta["val"]))])
    args = part.b.subgraph(total), "total", part.new
    call = part.b.called(torch.ops.higher_order.invoke_subgraph, args, (part.b.fresh(torch.zeros(())),))
    named = part.b.call(aten.neg.default, part.named(2))
    assert is_hidden(part.b.graph) is not is_told
    assert not is_hidden(part.b.graph, lowered=True)  # Inductor makes memory as told
    report = part.held(named, part.b.item(call, 0))
    assert report.reinplaced == ([SCATTER] if is_told else [])


@pytest.mark.parametrize("rows", [1, 2])
def test_of_what_is_repeated_all_elements_are_made_anew(rows: int) -> None:
    """They begin a storage, so that offsets name bytes of a part as ever."""
    part = Part(is_told=True, sizes=(rows, 4), strides=(0, 1))
    other = part.b.call(aten.neg.default, part.buffer)
    put = part.b.call(aten.slice_scatter.default, other, part.b.call(aten.full.default, [1], 5.0), 0, 3, 4)
    named = part.b.call(aten.neg.default, part.named(2))
    report = part.held(named, part.buffer, put)
    assert report.clones == report.reinplaced == [SCATTER]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_scatter_into_a_copy_is_a_copy_that_is_written_where_offsets_name_it(is_named: bool) -> None:
    """The copy begins a storage; what the functional wrapper returns began where its operand does."""
    part = Part(is_told=True)
    x, source = part.part, part.b.call(aten.full.default, [4], 3.0)
    copy = part.b.v1(adversary.operator("mix"), x=x, other=source)[-1]
    one = part.b.call(aten.full.default, [1], 7.0)
    new = part.b.call(aten.slice_scatter.default, copy, one, 0, 0, 1)
    seen = part.b.call(aten.as_strided.default, new, [2], [1], 2) if is_named else new
    report = part.held(part.b.call(aten.neg.default, seen), copy, part.buffer)
    assert report.clones == ["reinplace_adversary::mix.x", SCATTER]
    assert bool(part.gm.graph.find_nodes(op="call_function", target=new.target)) is not is_named


@pytest.mark.parametrize("split", [aten.split.Tensor, aten.unsafe_split.Tensor])
def test_offsets_into_parts_that_no_schema_tells_of_are_not_moved(split: torch._ops.OpOverload) -> None:
    """So what is split is no clone, which would begin elsewhere: the scatter stays functional."""
    b = GraphBuilder()
    x = b.placeholder(arange(20)[2:10])
    new = b.call(aten.as_strided_scatter.default, x, b.call(aten.full.default, [1], 7.0), [1], [1], 4)
    piece = b.item(b.call(split, new, 4), 0)
    named = b.call(aten.as_strided.default, piece, [2], [1], 3)
    gm = b.finished([b.call(aten.neg.default, named)])
    before = twin(gm)
    report = reinplace(gm)
    assert_equivalent(before, gm, b.inputs)
    assert report.clones == ["aten::as_strided_scatter.self"]
    is_functional = bool(gm.graph.find_nodes(op="call_function", target=new.target))
    assert is_functional is (split is aten.unsafe_split.Tensor)
