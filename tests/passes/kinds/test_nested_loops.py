"""Loops inside loops: as good as one, and planned in time that grows with their number."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Node

from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.reinplacing import tied_plan
from pytest_reinplace.passes.reinplacing.decide import settle
from pytest_reinplace.passes.verify import assert_equivalent

from ..nested import twin
from ..trace import arange

aten, higher = torch.ops.aten, torch.ops.higher_order


class Loops:
    """Loops of two rounds, each of which writes an element of a carry and runs the next one.

    Args:
        depth: how many there are inside each other.
        is_read: whether the innermost reads the carry after it was written.
    """

    def __init__(self, depth: int, *, is_read: bool = False) -> None:
        self.b = GraphBuilder()
        self.depth, self.is_read = depth, is_read
        given = torch.tensor(0), arange(8), torch.tensor([1]), torch.ones(1)
        number, x, at, new = (self.b.placeholder(t) for t in given)
        self.values = [n.meta["val"] for n in (number, x, at, new)]
        doubled = self.b.call(aten.mul.Tensor, x, 2.0)
        result = self.loop(self.b, (number, doubled, at, new), 1)
        self.gm: GraphModule = self.b.finished([result])

    def loop(self, b: GraphBuilder, given: tuple[Node, ...], depth: int) -> Node:
        test = GraphBuilder(self.b.fake_mode)
        number, *_ = (test.operand(v) for v in self.values)
        go_on = test.finished(test.call(aten.lt.Scalar, number, 2))
        bodies = b.subgraph(go_on), b.subgraph(self.body(depth))
        made = tuple(b.fresh(v) for v in self.values[:2])
        return b.item(b.called(higher.while_loop, (*bodies, given[:2], given[2:]), made), 1)

    def body(self, depth: int) -> GraphModule:
        b = GraphBuilder(self.b.fake_mode)
        number, carry, at, new = (b.operand(v) for v in self.values)
        made = b.call(aten.index_put.default, carry, [at], new, True)
        if depth < self.depth:
            made = self.loop(b, (number, made, at, new), depth + 1)
        elif self.is_read:
            made = b.call(aten.add.Tensor, made, carry)
        return b.finished([b.call(aten.add.Tensor, number, 1), made])


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_carry_of_all_is_one_buffer_unless_it_is_read(depth: int, is_read: bool) -> None:
    loops = Loops(depth, is_read=is_read)
    before = twin(loops.gm)
    report = reinplace(loops.gm)
    assert_equivalent(before, loops.gm, loops.b.inputs)
    # Where the innermost result is made anew, no loop may write the carry that it is given.
    assert report.clones == ["aten::index_put.self"] * (depth if is_read else 0)


def test_each_loop_is_planned_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    decided, counts = settle.decided, []

    def counting(*args: Any) -> Any:
        counts[-1] += 1
        return decided(*args)

    monkeypatch.setattr(tied_plan, "decided", counting)
    for depth in (2, 4, 8):
        counts.append(0)
        reinplace(Loops(depth).gm)
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])  # no more for the inner ones
