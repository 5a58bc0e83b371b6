"""Our passes inside the real Inductor: forward and backward, cold and warm cache, and what must not fail."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import Reason, ReinplacePass, Report, inductor_options, observe
from pytest_reinplace.passes.inductor import identity
from pytest_reinplace.passes.inductor.mend.wrapper_operands import copy_operands
from pytest_reinplace.passes.inductor.stage import clone_all

from ..trace import arange, functional, ops


@pytest.fixture
def empty_cache() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    with fresh_inductor_cache():
        yield
    torch._dynamo.reset()


def layer(cache: torch.Tensor, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    hidden = x * 2
    ops.scale(hidden, x)
    cache[i] = hidden[:2]
    return hidden + cache.sum()


def compiled(reports: list[Report], fn: Any, *args: Any, **more: Any) -> Any:
    with observe(lambda report, _: reports.append(report)):
        return torch.compile(fn, fullgraph=True, options={**inductor_options(), **more})(*args)


def test_cold_and_warm_cache_and_a_changed_pass(empty_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    index = torch.tensor([0, 3])
    expected_cache = torch.zeros(5, 4)
    expected = layer(expected_cache, arange(2, 4), index)
    seen: list[Report] = []
    for hits in (0, 1):
        torch._dynamo.reset()
        counters.clear()
        cache = torch.zeros(5, 4)
        result = compiled(seen, layer, cache, arange(2, 4), index)
        assert counters["inductor"]["fxgraph_cache_hit"] == hits
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(cache, expected_cache)
    assert len(seen) == 1 and seen[0].clones == []  # the warm run reused the cold run's graph
    monkeypatch.setattr(identity, "fingerprint", lambda: "another source")
    torch._dynamo.reset()
    counters.clear()
    compiled(seen, layer, torch.zeros(5, 4), arange(2, 4), index)
    assert counters["inductor"]["fxgraph_cache_hit"] == 0 and len(seen) == 2


def test_the_fingerprint_is_of_every_file_and_of_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "_PASSES", tmp_path)

    def digest() -> str:
        identity.fingerprint.cache_clear()
        return identity.fingerprint()

    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "b.py").write_text("y = 1\n")
    first = digest()
    assert digest() == first
    (tmp_path / "room" / "b.py").write_text("y = 2\n")
    second = digest()
    (tmp_path / "room" / "b.py").rename(tmp_path / "b.py")
    assert len({first, second, digest()}) == 3
    identity.fingerprint.cache_clear()


def test_forward_and_backward(empty_cache: None) -> None:
    def step(x: torch.Tensor, w: torch.Tensor, seen: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        seen[0] = seen[0] * 0.9 + x.detach().mean(0)
        hidden = torch.relu(x @ w)
        picked = torch.index_put(hidden, (i,), x[i] * 3)
        return (picked[:, 1:] * picked[:, :-1]).sum()

    def run(fn: Any) -> list[torch.Tensor]:
        x, w = arange(6, 4).div(10).requires_grad_(), arange(4, 4).div(7).requires_grad_()
        seen = torch.zeros(2, 4)
        fn(x, w, seen, torch.tensor([1, 4])).backward()
        return [x.grad, w.grad, seen]  # type: ignore[list-item]

    reports: list[Report] = []
    expected = run(step)
    with observe(lambda report, _: reports.append(report)):
        actual = run(torch.compile(step, fullgraph=True, options=inductor_options()))
    assert len(reports) == 2  # options reach the backward, which is compiled later
    for a, b in zip(expected, actual, strict=True):
        torch.testing.assert_close(a, b)


def test_a_graph_that_is_not_understood_clones_everything(caplog: pytest.LogCaptureFixture) -> None:
    gm, _ = functional(layer, torch.zeros(5, 4), arange(2, 4), torch.tensor([0, 3]))
    wrapper = next(n for n in gm.graph.nodes if "auto_functionalized" in str(n.target))
    victim = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.mul.Tensor)
    del victim.meta["val"]
    before = str(gm.graph)
    with caplog.at_level(logging.WARNING):
        report = ReinplacePass().apply(gm.graph)
    assert str(gm.graph) == before and report.outcomes == ()
    assert "mul" in caplog.text and 'meta["val"]' in caplog.text
    assert wrapper.meta["only_clone_these_tensors"] == [0]


@pytest.mark.parametrize("v2", [False, True])
def test_wrappers_that_are_left_are_marked(v2: bool) -> None:
    """torch 2.11 clones nothing where the mark is missing."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ops.some([x, y], None)
        return x + y

    gm, _ = functional(program, arange(4), arange(4), v2=v2)
    clone_all(gm.graph)
    marks = [
        n.meta.get("only_clone_these_tensors") for n in gm.graph.nodes if "functionalized" in str(n.target)
    ]
    assert marks == ([[0, 1]] if v2 else [["xs"]])


def test_v1_wrappers_through_inductor(empty_cache: None) -> None:
    reports: list[Report] = []
    index = torch.tensor([0, 3])
    cache, expected_cache = torch.zeros(5, 4), torch.zeros(5, 4)
    result = compiled(reports, layer, cache, arange(2, 4), index, enable_auto_functionalized_v2=False)
    torch.testing.assert_close(result, layer(expected_cache, arange(2, 4), index))
    torch.testing.assert_close(cache, expected_cache)
    assert reports[0].clones == []


def test_a_store_through_a_dtype_view_that_an_operator_wrote(empty_cache: None) -> None:
    """Inductor calls an operator for a dtype view of another width, and dropped the second write once."""

    def program(x: torch.Tensor) -> None:
        ops.scale(x.view(torch.int8), torch.ones(1, dtype=torch.int8))
        x[0] = 5.0

    x, expected = torch.ones(4, 4, dtype=torch.int32), torch.ones(4, 4, dtype=torch.int32)
    program(expected)
    reports: list[Report] = []
    compiled(reports, program, x)
    assert torch.equal(x, expected)
    assert reports[0].clones


def test_slices_of_an_input_that_is_itself_a_view(empty_cache: None) -> None:
    """torch counts the slice of a v2 wrapper from the start of the storage; it is counted from the input."""

    def program(x: torch.Tensor) -> None:
        ops.scale(x[:, 1:3], x[:, 5:7])

    x, expected = arange(64)[4:36].view(4, 8), arange(64)[4:36].view(4, 8)
    program(expected)
    reports: list[Report] = []
    compiled(reports, program, x)
    assert torch.equal(x, expected)
    assert reports[0].clones == []


def shifted_after_a_write(x: torch.Tensor) -> None:
    x[0] = x[3] * 2
    x[1:4] = x[0:3] + 1


def transposed_in_a_flat_buffer(x: torch.Tensor) -> None:
    flat = x.view(-1)
    flat[:4] += 1
    flat[4:20] += flat[4:20].view(4, 4).t().reshape(-1)


def stored_through_another_dtype(x: torch.Tensor) -> torch.Tensor:
    x.view(torch.int32)[0, 0] = 16256
    return x * 1


@pytest.mark.parametrize(
    ("program", "reasons"),
    [
        (shifted_after_a_write, set()),
        (transposed_in_a_flat_buffer, set()),
        (stored_through_another_dtype, {Reason.LOWERING, Reason.FOLLOWS}),
    ],
)
def test_writes_that_inductor_would_misorder_or_convert(
    empty_cache: None, program: Any, reasons: set[Reason]
) -> None:
    x, expected = arange(4, 6), arange(4, 6)
    first = program(expected)
    reports: list[Report] = []
    with observe(lambda report, _: reports.append(report), every=True):  # computed, nothing would be refused
        second = compiled([], program, x)
    assert torch.equal(x, expected) and (first is None or torch.equal(first, second))
    assert {o.reason for o in reports[0].outcomes if not o.reinplaced} == reasons


def shifted_after_a_write_into_a_copy(x: torch.Tensor) -> torch.Tensor:
    h = x.clone()
    h[torch.tensor([3, 50])] = 1.0
    h[1:] = h[:-1].clone()
    return h


def drawn_with_chances_of_their_own(x: torch.Tensor) -> torch.Tensor:
    h = x * 2
    h.bernoulli_(torch.sigmoid(x))
    return h


@pytest.mark.parametrize("program", [shifted_after_a_write_into_a_copy, drawn_with_chances_of_their_own])
def test_what_was_compiled_wrongly_or_not_at_all(empty_cache: None, program: Any) -> None:
    torch.manual_seed(0)
    expected = program(arange(100, 3))
    torch.manual_seed(0)
    assert torch.equal(compiled([], program, arange(100, 3), fallback_random=True), expected)


def test_writes_in_order_are_not_held_back(empty_cache: None) -> None:
    """The twin: a second write whose value was read elementwise, or from another buffer, stays in place."""

    def program(x: torch.Tensor, y: torch.Tensor) -> None:
        x[0] = y[0] * 2
        x[1:3] = x[1:3] + 1
        x[3] = y[1].flip(0)

    x, expected = arange(4, 6), arange(4, 6)
    program(expected, arange(2, 6))
    reports: list[Report] = []
    compiled(reports, program, x, arange(2, 6))
    assert torch.equal(x, expected) and reports[0].clones == []


def test_parts_of_a_flat_buffer_are_regrouped_and_written(empty_cache: None) -> None:
    """A gradient added to its place in a flat buffer is computed in its own shape, in the same order."""

    def program(flat: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:
        flat[:6].view_as(x).add_(x)
        flat[6:14].view_as(y).add_(y.relu())
        flat[:6].view_as(x).mul_(2).add_(x)

    x, y = arange(2, 3), arange(2, 2, 2)
    flat, expected = arange(16), arange(16)
    program(expected, x, y)
    reports: list[Report] = []
    compiled(reports, program, flat, x, y)
    assert torch.equal(flat, expected) and reports[0].clones == []


def test_a_nested_region_that_writes_is_left_to_inductor(empty_cache: None) -> None:
    @torch.compiler.nested_compile_region
    def region(a: torch.Tensor) -> torch.Tensor:
        a.add_(1)
        return a * 2

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 2
        return y, region(y), region(y)

    actual = compiled([], program, arange(4))
    for a, b in zip(program(arange(4)), actual, strict=True):
        assert torch.equal(a, b)


def test_a_reader_that_would_be_computed_again_is_not_overtaken(empty_cache: None) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        earlier = x * 2
        ops.scale(x[0], earlier[1].clone())
        return earlier + 1

    x, expected = arange(4, 4), arange(4, 4)
    first = program(expected)
    reports: list[Report] = []
    second = compiled(reports, program, x)
    assert torch.equal(x, expected) and torch.equal(first, second)
    assert reports[0].clones == []  # what is made of the bytes that a kernel writes is in memory before


def test_a_value_that_is_written_through_several_arguments_is_one(empty_cache: None) -> None:
    """Inductor would compute it for each of them."""

    def program(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        ops.both(y, y)
        return y * 2 + x

    x, expected = arange(4, 4), arange(4, 4)
    first = program(expected)
    second = compiled([], program, x)
    assert torch.equal(x, expected) and torch.equal(first, second)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_a_view_of_another_dtype_is_copied_where_it_begins_inside(
    empty_cache: None, inside: bool, dynamic: bool
) -> None:
    """Inductor clones it by its offset into a storage that its buffer does not have; torch 2.15 refuses."""

    def program(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        part = x[1:3] if inside else x[:2]
        ops.scale(part.view(torch.int16), v)
        x[2:4] = 1.0
        return x.sum(1)

    x, v = torch.arange(16.0).reshape(4, 4), torch.full((2, 8), 3, dtype=torch.int16)
    expected_x = x.clone()
    expected = program(expected_x, v)
    gm, _ = functional(program, x.clone(), v)
    copy_operands(gm.graph)
    assert "aten.clone.default]" in str(gm.graph)
    fast = torch.compile(program, fullgraph=True, dynamic=dynamic, options=inductor_options())
    torch.testing.assert_close(fast(x, v), expected, equal_nan=True)
    torch.testing.assert_close(x, expected_x, equal_nan=True)
