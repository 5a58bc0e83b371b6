"""Subgraphs that hand on what they are given: a copy whose storage a result of the call lies in stays one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Node

from pytest_reinplace.passes import post_grad
from pytest_reinplace.passes._torch import hop
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import assert_equivalent

from ..nested import twin
from ..trace import arange

aten: Any = torch.ops.aten
BODIES = "computed", "handed on", "a view", "not understood"


def carried(b: GraphBuilder, start: Node, body: str) -> Node:
    """Scan over rows; returns the carry, as the body makes it of the carry before."""
    rows = b.placeholder(arange(3, 4))
    inner = GraphBuilder(b.fake_mode)
    carry, row = (inner.operand(n.meta["val"]) for n in (start, b.call(aten.select.int, rows, 0, 0)))
    if body == "computed":
        made = inner.call(aten.neg.default, carry)
    elif body == "a view":
        made = inner.call(aten.view.default, carry, [4])
    elif body == "not understood":
        made = inner.call(aten.neg_.default, carry)
    else:
        made = carry
    scanned = inner.finished([made, inner.call(aten.neg.default, row)])
    results = start.meta["val"], rows.meta["val"]
    call = b.called(
        hop("scan"), (b.subgraph(scanned), [start], [rows], ()), tuple(map(torch.empty_like, results))
    )
    return b.item(call, 0)


@pytest.mark.parametrize("body", BODIES)
def test_a_result_of_a_call_is_no_input(body: str) -> None:
    b = GraphBuilder()
    copied = b.call(aten.clone.default, b.placeholder(arange(4)))
    gm = b.finished([carried(b, copied, body)])
    after = twin(gm)
    applied = post_grad.find("no_ops").apply(after)
    assert (copied.name in applied.rewritten) == (body == "computed")
    assert_equivalent(gm, after, b.inputs)


@pytest.mark.parametrize("body", BODIES)
def test_what_a_call_was_given_is_written_before_its_result_is_read(body: str) -> None:
    b = GraphBuilder()
    value = b.call(aten.neg.default, b.placeholder(arange(4)))
    copied = b.call(aten.clone.default, value)
    result = carried(b, copied, body)
    written = b.call(aten.fill_.Scalar, value, 3)
    gm = b.finished([b.call(aten.neg.default, result), b.call(aten.neg.default, written)])
    after = twin(gm)
    applied = post_grad.find("no_ops").apply(after)
    assert (copied.name in applied.rewritten) == (body == "computed")
    torch.testing.assert_close(after(*b.inputs), gm(*b.inputs))
