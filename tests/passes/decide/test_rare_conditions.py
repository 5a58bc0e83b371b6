"""Conditions that few graphs meet: each holds a graph that is rewritten wrongly, or dearer, without it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.fx import Node

from pytest_reinplace.passes import Reason
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder

from ..kinds.test_in_place_forms import held, rewritten, targets

aten = torch.ops.aten


class Table:
    """A graph under construction: a computed table of six rows, whose rows are replaced and looked at."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        given = self.builder.placeholder(torch.arange(24).view(6, 4))
        self.call = self.builder.call
        self.whole = self.call(aten.mul.Tensor, given, 2)

    def replaced(self, node: Node, row: int) -> Node:
        new = self.call(aten.full.default, [4], 100 + row, dtype=torch.int64)
        return self.call(aten.select_scatter.default, node, new, 0, row)

    def seen(self, node: Node, row: int) -> Node:
        return self.call(aten.neg.default, self.call(aten.select.int, node, 0, row))

    def hidden(self, node: Node, hides: bool) -> Node:
        """Return what is the operand itself without saying so in its schema, or a value of its own."""
        if hides:
            return self.call(aten.dropout.default, node, 0.5, False)
        return self.call(aten.mul.Tensor, node, 3)


@pytest.mark.parametrize("hides", [True, False])
def test_what_an_unknown_alias_was_made_of_is_not_written(hides: bool) -> None:
    table = Table()
    alias = table.hidden(table.whole, hides)
    new = table.replaced(table.whole, 0)
    report, _ = held(table.builder, [table.seen(alias, 0), table.seen(new, 1)])
    assert ("aten::select_scatter.self" in report.reinplaced) is not hides


@pytest.mark.parametrize("hides", [True, False])
def test_what_an_unknown_alias_is_made_of_does_not_live_elsewhere(hides: bool) -> None:
    table = Table()
    new = table.replaced(table.whole, 0)
    alias = table.hidden(new, hides)
    newer = table.replaced(table.whole, 2)
    report, _ = held(table.builder, [table.seen(alias, 2), table.seen(newer, 3)])
    assert report.reinplaced.count("aten::select_scatter.self") == (1 if hides else 2)


@pytest.mark.parametrize("row", [0, 3])
def test_who_overwrites_other_bytes_still_hands_on_the_old_ones(row: int) -> None:
    table = Table()
    first = table.seen(table.replaced(table.whole, 3), 3)
    other = table.replaced(table.whole, row)
    report, _ = held(table.builder, [first, table.seen(other, 3)])
    assert report.reinplaced.count("aten::select_scatter.self") == (2 if row == 3 else 1)


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("conjugated", [True, False])
def test_elements_put_back_conjugated_are_written(conjugated: bool, read: bool) -> None:
    b = GraphBuilder()
    given = b.placeholder(torch.complex(torch.arange(4.0), torch.arange(4.0) + 1))
    whole = b.call(aten.mul.Tensor, given, 2)
    seen = b.call(aten._conj.default, whole) if conjugated else whole
    part = b.call(aten.slice.Tensor, seen, 0, 1, 3)
    new = b.call(aten.slice_scatter.default, whole, part, 0, 1, 3)
    old = b.call(aten.add.Tensor, whole, 1) if read else new
    _, gm = held(b, [new, old])
    assert any("copy_" in t or "scatter" in t for t in targets(gm)) is conjugated


@pytest.mark.parametrize("later", [True, False])
def test_elements_put_back_are_overwritten_all_the_same(later: bool) -> None:
    def program(x: Tensor, other: Tensor) -> Tensor:
        new = aten.slice_scatter.default(x, x[1:3], 0, 1, 3)
        early = new.neg()
        x.copy_(other)
        return new.neg() if later else early

    report, _ = rewritten(program, torch.arange(4), torch.arange(4) + 9)
    assert ("aten::slice_scatter.self" in report.clones) is later


@pytest.mark.parametrize("values", [6, 2])
def test_no_old_value_is_kept_for_a_write_that_is_refused_after_all(values: int) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        row = y[5]
        return aten.index_put.default(y, [torch.arange(values)], y[:values]), row.exp()

    report, _ = rewritten(program, torch.arange(24.0).view(6, 4))
    copies = {6: ["aten::index_put.self"], 2: ["aten::index_put.values", "aten::exp.self"]}
    assert sorted(report.clones) == sorted(copies[values])
    assert report.clone_bytes == {6: 96, 2: 48}[values]


@pytest.mark.parametrize("early", [True, False])
def test_what_is_written_into_a_clone_made_early_does_not_lie_in_place(early: bool) -> None:
    """A scatter that puts it there has something to write."""

    def program(x: Tensor, y: Tensor) -> Tensor:
        whole = x * 2
        row = (whole if early else y * 3)[2:3]
        new = aten.index_put.default(whole, [torch.tensor([0, 1])], y[:2])
        last = aten.index_put.default(row, [torch.tensor([0])], y[2:3])
        return aten.slice_scatter.default(new, last, 0, 2, 3)

    report, _ = rewritten(program, torch.arange(24.0).view(6, 4), torch.arange(24.0).view(6, 4) + 50)
    found = [(o.reason, o.nbytes) for o in report.outcomes if not o.reinplaced]
    assert found == ([(Reason.CHEAPER, 16)] if early else [])


@pytest.mark.parametrize("later", [True, False])
def test_an_elementwise_operator_of_an_operand_and_itself_changes_it(later: bool) -> None:
    table = Table()
    early = table.seen(table.whole, 1)
    new = table.builder.v1(adversary.operator("rows"), x=table.whole, other=table.whole)[-1]
    old = table.call(aten.neg.default, table.whole) if later else early
    report, _ = held(table.builder, [new, old])
    assert ("reinplace_adversary::rows.x" in report.clones) is later


def test_an_input_that_was_overwritten_before_is_kept() -> None:
    def before(x: Tensor, y: Tensor) -> Tensor:
        x.copy_(y)
        return aten.index_put.default(x, [torch.tensor([1])], y[:1] * 2).sum()

    def after(x: Tensor, y: Tensor) -> Tensor:
        total = aten.index_put.default(x, [torch.tensor([1])], y[:1] * 2).sum()
        x.copy_(y)
        return total

    inputs = (torch.arange(24.0).view(6, 4), torch.arange(24.0).view(6, 4) + 50)
    assert rewritten(before, *inputs)[0].clones == ["aten::index_put.self"]
    assert rewritten(after, *inputs)[0].clones == []


def test_an_input_that_is_overwritten_in_part_is_kept() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        total = aten.index_put.default(x, [torch.tensor([1])], y[:1] * 2).sum()
        x[:1].copy_(y[:1])
        return total

    report, _ = rewritten(program, torch.arange(24.0).view(6, 4), torch.arange(24.0).view(6, 4) + 50)
    assert report.clones == ["aten::index_put.self"]
