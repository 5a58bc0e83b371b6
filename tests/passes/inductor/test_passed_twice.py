"""What a program passes twice is one tensor; what only looks like it in the functional graph is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_inductor_cache
from torch.fx import GraphModule

from pytest_reinplace.passes import NotePass, ProtectPass, inductor_options, observe
from pytest_reinplace.passes._torch import hop
from pytest_reinplace.passes.graph.program_notes import is_one_tensor
from pytest_reinplace.passes.report import Report

from ..trace import arange

Tensor = torch.Tensor


@torch.library.custom_op("reinplace_test::accumulate", mutates_args=("x",))
def accumulate(x: Tensor, by: Tensor) -> None:
    """Adds to each element the one before, one by one: it matters whether these are its own results."""
    for i in range(1, len(x)):
        x[i] += by[i - 1]


@torch.library.custom_op("reinplace_test::accumulate_both", mutates_args=("x", "y"))
def accumulate_both(x: Tensor, y: Tensor, by: Tensor) -> None:
    accumulate._init_fn(x, by)
    accumulate._init_fn(y, by)


def one_input(x: Tensor) -> Tensor:
    accumulate(x, x)
    return x * 2


def one_computed(x: Tensor) -> Tensor:
    y = x * 2
    z = y
    accumulate(z, y)
    return y + z


def views_of_one(x: Tensor) -> Tensor:
    accumulate(x[1:], x.view(-1)[:-1])
    return x


def one_of_three(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    accumulate_both(y, x, y)
    return y, x


IN_PLACE = (one_input, one_computed, views_of_one, one_of_three)


def a_clone(x: Tensor) -> Tensor:
    y = x.clone()
    accumulate(y, x)
    return y + x


def a_copy(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    y.copy_(x)
    accumulate(y, x)
    return y


def a_clone_behind(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.clone()
    accumulate(y, y)
    accumulate(y, x)
    return y, x


def kept(x: Tensor) -> Tensor:
    old = x.clone()
    accumulate(x, x)
    return old + x


def equal_ones(x: Tensor) -> Tensor:
    y, z = x + 1, x + 1
    accumulate(y, z)
    return y


APART = (a_clone, a_copy, a_clone_behind, kept, equal_ones)


def compiled(program: Any, *args: Tensor) -> tuple[Any, list[Report]]:
    reports: list[Report] = []
    with observe(lambda report, _: reports.append(report)):
        return torch.compile(program, fullgraph=True, options=inductor_options())(*args), reports


@pytest.mark.parametrize("program", [*IN_PLACE, *APART])
def test_it_computes_what_eager_mode_does(program: Any) -> None:
    torch._dynamo.reset()
    expected, x = arange(6), arange(6)
    results = program(expected)
    with fresh_inductor_cache():
        given, reports = compiled(program, x)
    torch.testing.assert_close(given, results)
    assert torch.equal(x, expected)
    (report,) = reports
    assert not any("accumulate" in label for label in report.clones)
    assert bool(report.clones) is (program in (a_clone, a_copy, a_clone_behind, kept))


def test_in_training_what_was_made_one_is_kept_apart() -> None:
    def program(x: Tensor, weight: Tensor) -> Tensor:
        y, z = x + 1, x + 1
        accumulate(y, z)
        return y * weight

    torch._dynamo.reset()
    weight = torch.ones(6, requires_grad=True)
    with fresh_inductor_cache():
        result, (report, *_) = compiled(program, arange(6), weight)
    torch.testing.assert_close(result, program(arange(6), weight))
    assert set(report.clones) <= {"reinplace_test::accumulate.x"}  # torch 2.15 makes both


def test_graphs_of_one_text_are_kept_apart_by_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functionally both are ``accumulate(x=x, by=x)``."""

    def passed_twice(x: Tensor, y: Tensor) -> None:
        accumulate(x, x)

    def copied(x: Tensor, y: Tensor) -> None:
        y.copy_(x)
        accumulate(x, y)

    with fresh_inductor_cache(), torch._functorch.config.patch(enable_autograd_cache=False):
        for program in (passed_twice, copied, passed_twice):
            torch._dynamo.reset()
            counters.clear()
            given, expected = [arange(6), arange(6) * 2], [arange(6), arange(6) * 2]
            compiled(program, *given)
            program(*expected)
            torch.testing.assert_close(given, expected)
        assert counters["inductor"]["fxgraph_cache_hit"] == 1


# -- notes -------------------------------------------------------------------------------------


def noted(program: Any, *args: Tensor) -> list[Any]:
    """Return the notes that are made of the calls of a program."""
    found: list[Any] = []

    def backend(gm: GraphModule, _: Any) -> Any:
        NotePass()(gm.graph)
        found.extend(node.meta.get("custom") for node in gm.graph.nodes if node.op == "call_function")
        return gm

    torch._dynamo.reset()
    torch.compile(program, backend=backend, fullgraph=True)(*args)
    return [note["pytest_reinplace"] for note in found if note]


def note_of(op: str, *shared: str) -> dict[str, Any]:
    named = [list(shared or ("x", "by"))]
    return {"call": f"reinplace_test::{op}", "shared": named, "real": [], "places": {}}


def test_arguments_are_named_with_what_they_are_given_to() -> None:
    assert noted(one_input, arange(6)) == [note_of("accumulate")]
    assert noted(views_of_one, arange(6)) == [note_of("accumulate")]
    assert noted(one_of_three, arange(6)) == [note_of("accumulate_both")]


@pytest.mark.parametrize("program", [a_clone, a_copy, equal_ones])
def test_nothing_is_noted_of_others(program: Any) -> None:
    assert noted(program, arange(6)) == []


def given_other_memory(x: Tensor) -> Tensor:
    y = x * 2
    accumulate(y, x)
    result = y * 1
    y.set_(x)
    return result


def test_memory_that_a_tensor_is_given_later_is_not_noted() -> None:
    assert noted(given_other_memory, arange(6)) == []


def test_what_only_reads_is_not_noted() -> None:
    assert noted(lambda x: torch.ops.aten.add.Tensor(x, x), arange(6)) == []


def wrapper(note: Any) -> GraphModule:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    op = torch.ops.reinplace_test.accumulate.default
    node = graph.call_function(hop("auto_functionalized"), (op,), {"x": x, "by": x})
    node.meta["custom"] = {"pytest_reinplace": note}
    graph.output(node)
    return GraphModule(torch.nn.Module(), graph)


@pytest.mark.parametrize(
    ("note", "is_one"),
    [
        (note_of("accumulate"), True),
        (note_of("composite"), False),  # which calls it, with whatever
        (note_of("accumulate", "by", "other"), False),
    ],
)
def test_notes_are_of_that_call_and_told_by_its_name(note: Any, is_one: bool) -> None:
    gm = wrapper(note)
    names = ["x", "by"]
    assert not any(is_one_tensor(node, names) for node in gm.graph.nodes)  # caches would not see it
    ProtectPass()(gm.graph)
    gm.graph.lint()
    (node,) = gm.graph.find_nodes(op="call_function", target=hop("auto_functionalized"))
    assert is_one_tensor(node, names) is is_one
