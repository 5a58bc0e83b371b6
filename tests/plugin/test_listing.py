"""Graphs as lines: every node one, readable, and few of them however large the graph is."""

from __future__ import annotations

import time

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import Report
from pytest_reinplace.picture.listing import MOST_CHARACTERS, MOST_LINES, Line, abridged, lines_of
from pytest_reinplace.picture.picture import Picture, copied


def texts(graph: torch.fx.Graph) -> list[str]:
    return [line.text for line in lines_of(copied(graph))]


def test_a_node_reads_like_a_line_of_a_program() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        a, _ = x[1:].split([2, 5])
        return [a.sum(dim=0, keepdim=True), x]

    gm = make_fx(program, tracing_mode="fake")(torch.ones(8))
    assert texts(gm.graph) == [
        "x_1: float32[8]",
        "slice_1: float32[7] = aten.slice.Tensor(x_1, 0, 1, 9223372036854775807)",
        "split_with_sizes: (float32[2], float32[5]) = aten.split_with_sizes.default(slice_1, [2, 5])",
        "getitem: float32[2] = split_with_sizes[0]",
        "getitem_1: float32[5] = split_with_sizes[1]",
        "sum_1: float32[1] = aten.sum.dim_IntList(getitem, [0], True)",
        "return [sum_1, x_1]",
    ]


def test_calls_without_types_and_odd_arguments_have_a_text() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    a = graph.get_attr("weight")
    b = graph.call_function(torch.fx.wrap, (x, slice(None, a)), {"many": {"k": (x,)}, "text": "a\n b"})
    graph.output((b,))
    assert texts(graph)[1:] == [
        "weight = self.weight",
        "wrap = torch.fx._symbolic_trace.wrap(x, :weight, many={'k': (x,)}, text='a\\n b')",
        "return (wrap,)",
    ]


def test_a_long_line_is_cut() -> None:
    graph = torch.fx.Graph()
    inputs = [graph.placeholder(f"x{i}") for i in range(5000)]
    graph.output(graph.call_function(torch.ops.aten.cat.default, (inputs,)))
    (text,) = texts(graph)[-2:-1]
    assert (len(text), text[-1]) == (MOST_CHARACTERS, "…")


def test_what_tells_is_kept_with_what_is_around_it() -> None:
    lines = [Line(f"n{i}", f"line {i}") for i in range(1000)]
    assert abridged(lines, {"n7"}, most=1000) == lines
    kept = abridged(lines, {"n500"}, most=50)
    named = [line.node for line in kept if line.node]
    assert len(named) == 50
    assert {"n0", "n39", "n497", "n500", "n503"} <= set(named)
    gaps = [line.text for line in kept if not line.node]
    assert sum(int(text.split()[1]) for text in gaps) == 950
    assert all(text.endswith("lines left out") for text in gaps)


def test_many_that_tell_are_cut_too() -> None:
    lines = [Line(f"n{i}", "") for i in range(1000)]
    assert len([x for x in abridged(lines, {x.node for x in lines}, most=10) if x.node]) == 10


def _drawn(nodes: int) -> tuple[float, Picture]:
    graph = torch.fx.Graph()
    first = value = graph.placeholder("x")
    first.meta["val"] = torch.empty(4, device="meta")
    for _ in range(nodes):
        value = graph.call_function(torch.ops.aten.neg.default, (value,))
        value.meta["val"] = first.meta["val"]
    graph.output(value)
    begun = time.process_time()
    picture = Picture.of(copied(graph), graph, Report())
    return time.process_time() - begun, picture


def test_a_graph_of_30_000_nodes_is_drawn_in_the_time_of_ten_of_3_000() -> None:
    few, _ = _drawn(3_000)
    took, picture = _drawn(30_000)
    assert took < 40 * few  # 10 where it is linear; what grows with the square takes 100
    for lines in (picture.before, picture.after):
        assert len(lines) == MOST_LINES + 1
        assert lines[-1].text == f"… {30_002 - MOST_LINES} lines left out"
    assert picture.memory.nodes == 30_002


def test_a_wrapper_says_what_it_was_told() -> None:
    graph = torch.fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    hop = torch.ops.higher_order.auto_functionalized_v2
    call = graph.call_function(hop, (torch.ops.aten.add_.Tensor,), {"_all_bases": [a, b]})
    graph.output(call)
    expected = "auto_functionalized_v2 = auto_functionalized_v2(aten.add_.Tensor, _all_bases=[a, b])"
    assert texts(graph)[2] == expected
    call.meta["only_clone_these_tensors"] = [1]
    assert texts(graph)[2] == f"{expected}  # clones b"
    call.meta["only_clone_these_tensors"] = []
    assert texts(graph)[2] == f"{expected}  # in place"
    call.kwargs = {"_all_bases": [a] * 500}
    assert texts(graph)[2].endswith("…  # in place")
    assert len(texts(graph)[2]) == MOST_CHARACTERS
