"""Whatever fails in a hook of ours, the graph is what it was before, and the compile goes on."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import ReinplacePass, inductor_options
from pytest_reinplace.passes.graph import program_notes
from pytest_reinplace.passes.inductor import protect, stage
from pytest_reinplace.passes.inductor.protect import ProtectPass
from pytest_reinplace.passes.ops.wrapper_names import is_wrapper
from pytest_reinplace.passes.post_grad import no_ops

from ..trace import arange, functional, ops

DECIDING = ("regenerated_outputs", "return_inputs", "reinplace_graph", "erase")
MENDS = (
    *("move_with_bases", "copy_operands", "clone_all", "call_kernels", "realize", "mark", "delay_buffers"),
    *("rebase", "put_into_copies"),
)


def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    old = x * 2
    old[0] = 3.0
    ops.scale(x[1], y[0])
    ops.some([old, y], None)
    return old + x


def shown(graph: Any) -> list[tuple[str, str, set[str]]]:
    return [(n.name, n.format_node() or "", set(n.meta)) for n in graph.nodes]


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name.startswith("pytest_reinplace")]


def broken(*args: Any, **kwargs: Any) -> Any:
    raise ZeroDivisionError("planted")


def broken_at_first() -> Any:
    """Return a function that fails twice, after which the graph is only marked."""
    calls = iter(range(2))

    def run(graph: Any) -> None:
        if next(calls, None) is not None:
            broken()

    return run


def copies(graph: Any) -> list[Any]:
    return graph.find_nodes(op="call_function", target=torch.ops.aten.clone.default)


@pytest.mark.parametrize("step", MENDS)
def test_the_graph_is_as_it_was(
    step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gm, _ = functional(program, arange(4, 4), arange(4, 4))
    before = shown(gm.graph)
    monkeypatch.setattr(stage, step, broken_at_first() if step == "clone_all" else broken)
    with caplog.at_level(logging.WARNING, "pytest_reinplace"):
        report = ReinplacePass().apply(gm.graph)
    (message,) = warnings_in(caplog)
    assert "planted" in message and "ZeroDivisionError" in message
    marked = [n for n in gm.graph.nodes if n.meta.pop("only_clone_these_tensors", None) is not None]
    assert len(marked) == (0 if step == "clone_all" else 2)
    assert shown(gm.graph) == before and report.outcomes == ()
    gm.graph.lint()


@pytest.mark.parametrize("step", DECIDING)
def test_wrappers_are_mended_where_deciding_fails(
    step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They are called on copies, of parts of other values too, which Inductor would copy wrongly."""
    gm, _ = functional(program, arange(4, 4), arange(4, 4))
    monkeypatch.setattr(stage, step, broken)
    with caplog.at_level(logging.WARNING, "pytest_reinplace"):
        report = ReinplacePass().apply(gm.graph)
    (message,) = warnings_in(caplog)
    assert "planted" in message and "ZeroDivisionError" in message
    assert not any(is_wrapper(n.target) or "only_clone_these_tensors" in n.meta for n in gm.graph.nodes)
    assert copies(gm.graph) and report.outcomes == ()
    gm.graph.lint()


@pytest.mark.parametrize("step", ["count_from_bases", "remove"])
def test_so_it_is_before_the_joint_stage(
    step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gm, _ = functional(program, arange(4, 4), arange(4, 4))
    before = shown(gm.graph)
    monkeypatch.setattr(no_ops if step == "remove" else protect, step, broken)
    with caplog.at_level(logging.WARNING, "pytest_reinplace"):
        ProtectPass()(gm.graph)
    (message,) = warnings_in(caplog)
    assert "planted" in message and shown(gm.graph) == before


def test_without_a_failure_the_graph_changes(caplog: pytest.LogCaptureFixture) -> None:
    """The twin."""
    gm, _ = functional(program, arange(4, 4), arange(4, 4))
    before = shown(gm.graph)
    assert ReinplacePass().apply(gm.graph).reinplaced
    assert shown(gm.graph) != before and not warnings_in(caplog)


@pytest.mark.parametrize(
    ("module", "step"), [(stage, "realize"), (protect, "count_from_bases"), (program_notes, "note")]
)
def test_the_compile_goes_on(module: Any, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, step, broken)
    torch.compiler.reset()
    given, expected = (arange(4, 4), arange(4, 4)), (arange(4, 4), arange(4, 4))
    with fresh_inductor_cache():
        actual = torch.compile(program, fullgraph=True, options=inductor_options())(*given)
    assert torch.equal(actual, program(*expected))
    assert all(map(torch.equal, given, expected))
    torch.compiler.reset()
