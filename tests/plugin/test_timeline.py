"""Live bytes over a graph: what is held, from when to when, and what being in place saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import analyze
from pytest_reinplace.picture.picture import copied
from pytest_reinplace.picture.timeline import MOST_POINTS, Timeline

from .graphs import both_v2, chain_of_scatters, functional_of, in_list, twice_v1


def drawn(gm: torch.fx.GraphModule) -> Timeline:
    # Nothing moves: who reads the old value after a write makes it a clone.
    return Timeline.of(copied(gm.graph), analyze(gm, order="keep").outcomes)


def traced(fn: Callable[..., Any], *args: Any, dynamic: bool = False) -> torch.fx.GraphModule:
    return make_fx(fn, tracing_mode="symbolic" if dynamic else "fake")(*args)


def test_a_value_is_held_from_its_making_to_its_last_use() -> None:
    # x, mul, add, sum, add, output: mul is read by the first add only, the first add by sum and the last.
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 + 1
        return y + y.sum()

    gm = traced(program, torch.ones(8))
    assert drawn(gm).functional == (0, 32, 64, 32 + 4, 32 + 4 + 32, 32)


def test_views_hold_what_they_are_of_and_nothing_more() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        a, b = (x * 2).view(4, 2).split(2)
        return a + b

    assert drawn(traced(program, torch.ones(8))).functional == (0, 32, 32, 32, 32, 32, 32 + 16, 16)


def test_results_of_several_are_held_one_by_one() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        values, _ = x.sort()
        return values + 1

    # x, sort, values, indices, add, output: the indices are taken, never read, and gone after that
    assert drawn(traced(program, torch.ones(8))).functional == (0, 96, 96, 96, 64, 32)


def test_inputs_are_left_out_and_sizes_are_hinted() -> None:
    gm = traced(lambda x: x + 1, torch.ones(8, 3), dynamic=True)
    assert set(drawn(gm).functional) == {0, 96}


def kept(x: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * 2
    return y.index_put((index,), torch.ones(())), y.sum()


def written(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return (x * 2).index_put((index,), torch.ones(()))


def test_a_clone_is_marked_and_what_is_in_place_holds_nothing() -> None:
    args = torch.ones(8), torch.tensor([1])
    clone, place = drawn(traced(kept, *args)), drawn(traced(written, *args))
    assert [(c.node, c.label, c.nbytes) for c in clone.copies] == [("index_put", "aten::index_put.self", 32)]
    assert clone.decided == clone.functional
    at = clone.copies[0].at
    assert clone.functional[at] - clone.functional[at - 1] == 32
    assert place.copies == ()
    assert max(place.functional) - max(place.decided) == 32


@pytest.mark.parametrize("program", [twice_v1, both_v2, in_list, chain_of_scatters], ids=lambda f: f.__name__)
def test_what_is_written_into_inputs_in_place_takes_no_memory(program: Callable[..., Any]) -> None:
    gm = functional_of(program)
    report, curve = analyze(gm), drawn(gm)
    assert report.clones == []
    assert max(curve.decided) < max(curve.functional)
    assert all(one <= other for one, other in zip(curve.decided, curve.functional, strict=True))


def test_a_long_graph_has_few_points_and_they_are_the_peaks() -> None:
    graph = torch.fx.Graph()
    value = graph.placeholder("x")
    with torch.device("meta"):
        value.meta["val"] = torch.empty(1)
        for position in range(5000):
            value = graph.call_function(torch.ops.aten.neg.default, (value,))
            value.meta["val"] = torch.empty(1000 if position == 3333 else 1)
    graph.output(value)
    curve = Timeline.of(copied(graph), ())
    assert len(curve.functional) <= MOST_POINTS
    assert curve.nodes == 5002
    assert max(curve.functional) == 4004
    assert curve.functional.index(4004) == (3333 + 1) // curve.step


def test_what_is_held_at_the_peak_is_named() -> None:
    def program(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        big = (x * 2).index_put((index,), torch.ones(()))
        values, _ = big.sort()
        return (values + big) * x[:2].sum()

    found = drawn(traced(program, torch.ones(8), torch.tensor([1])))
    nodes = list(copied(traced(program, torch.ones(8), torch.tensor([1])).graph))
    peak = found.peak
    assert max(found.decided) == found.decided[peak.at] == sum(value.nbytes for value in peak.values)
    assert peak.at == found.decided.index(max(found.decided))
    assert nodes[peak.at] == "sort"
    # index_put is in place: it lies in what mul made, and is needed by add
    held = {(value.node, value.element): (value.nbytes, nodes[value.last]) for value in peak.values}
    assert held == {
        ("mul", ""): (32, "add"),
        ("sort", "self[0]"): (32, "add"),
        ("sort", "self[1]"): (64, "getitem_1"),
    }
    assert peak.count == 3


def test_only_the_largest_values_are_named_and_all_are_counted() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[: i + 1] + 1 for i in range(30)])

    peak = drawn(traced(program, torch.ones(30))).peak
    assert (peak.count, len(peak.values)) == (31, 20)
    assert [value.nbytes for value in peak.values][:2] == [4 * sum(range(1, 31)), 120]
