"""Empty buffers are made where they are first used."""

from __future__ import annotations

import torch
from torch.fx import Graph

from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.stage import delay_buffers

from ..trace import arange

aten = torch.ops.aten
SIZES = {"dtype": torch.int64, "device": torch.device("cpu")}


def names(graph: Graph) -> list[str]:
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def test_a_buffer_is_made_right_before_its_first_user() -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4, 4))
    empty = b.call(aten.empty.memory_format, [4, 4], **SIZES)
    product = b.call(aten.mm.default, x, x)
    row = b.call(aten.select.int, empty, 0, 0)
    filled = b.call(aten.add.Tensor, row, b.call(aten.sum.default, product))
    gm = b.finished([filled, b.call(aten.mm.default, empty, x)])
    delay_buffers(gm.graph)
    gm.graph.lint()
    assert names(gm.graph)[:3] == ["aten.mm.default", "aten.empty.memory_format", "aten.select.int"]


def test_what_is_used_at_once_stays() -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4, 4))
    empty = b.call(aten.empty.memory_format, [4, 4], **SIZES)
    gm = b.finished([b.call(aten.mm.default, empty, x)])
    before = [node.name for node in gm.graph.nodes]
    delay_buffers(gm.graph)
    gm.graph.lint()
    assert [node.name for node in gm.graph.nodes] == before


def test_what_is_filled_with_a_number_is_made_late_too() -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4, 4))
    zeros = b.call(aten.full.default, [4, 4], 0, **SIZES)
    product = b.call(aten.mm.default, x, x)
    gm = b.finished([b.call(aten.mm.default, product, zeros)])
    delay_buffers(gm.graph)
    gm.graph.lint()
    assert names(gm.graph) == ["aten.mm.default", "aten.full.default", "aten.mm.default"]


def test_what_is_made_like_another_tensor_stays() -> None:
    """It would keep that one in memory for longer."""
    b = GraphBuilder()
    x = b.placeholder(arange(4, 4))
    zeros = b.call(aten.zeros_like.default, x)
    product = b.call(aten.mm.default, x, x)
    gm = b.finished([b.call(aten.mm.default, product, zeros)])
    delay_buffers(gm.graph)
    assert names(gm.graph)[0] == "aten.zeros_like.default"
