"""Programs compiled before and after a hint is followed, and lists that a hint says to paste."""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.passes import Outcome, Reason
from pytest_reinplace.passes.reason import LIST

aten = torch.ops.aten
KEEP_ORDER = {"reorder_for_locality": False}
OUR_PASS = Reason.MISSED.hint.partition(": ")[2]
BOTH = "the old value and the new one are both needed: if that is meant, "


def _register() -> None:
    if hasattr(torch.ops.hinttest, "scale_"):
        return

    @torch.library.custom_op("hinttest::scale_", mutates_args={"x"})
    def scale_(x: torch.Tensor, by: torch.Tensor) -> None:
        x.copy_(x * by)

    @torch.library.custom_op("hinttest::both_", mutates_args={"x", "y"})
    def both_(x: torch.Tensor, y: torch.Tensor) -> None:
        x.mul_(2)
        y.add_(1)

    @torch.library.custom_op("hinttest::total", mutates_args=())
    def total(x: torch.Tensor) -> torch.Tensor:
        return x.sum()

    @total.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return x.new_empty(())


_register()
scale_, both_, total = torch.ops.hinttest.scale_, torch.ops.hinttest.both_, torch.ops.hinttest.total
library = torch.library.Library("hinttest", "FRAGMENT")
library.define("first_row(Tensor x) -> Tensor")
library.impl("first_row", lambda x: x[0], "CompositeExplicitAutograd")
library.define("copied_row(Tensor x) -> Tensor")
library.impl("copied_row", lambda x: x[0].clone(), "CompositeExplicitAutograd")


@dataclasses.dataclass(frozen=True)
class Ran:
    """What a compiled program did.

    Args:
        clones: what was cloned.
        result: what it returned.
        inputs: its inputs afterwards.
    """

    clones: tuple[Outcome, ...]
    result: Any
    inputs: tuple[Any, ...]


def ran(program: Callable[..., Any], inputs: tuple[Any, ...], under_test: str, **options: Any) -> Ran:
    """Compile a program, run it, and hold it against eager."""
    torch._dynamo.reset()
    mine, eagers = copy.deepcopy(inputs), copy.deepcopy(inputs)
    with Capture(under_test, "graph", asker="marked test") as capture:
        result = torch.compile(program, **options)(*mine)
    assert not any(graph.problem or graph.suspicious for graph in capture.graphs)
    torch.testing.assert_close((result, mine), (program(*eagers), eagers))
    return Ran(tuple(o for o in capture.report.outcomes if not o.reinplaced), result, mine)


def follow(
    program: Callable[..., Any],
    changed: Callable[..., Any],
    inputs: tuple[Any, ...],
    hint: str,
    under_test: str,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    same_inputs: bool = True,
) -> None:
    """Hold that a program has a clone with this hint, and the changed one none and the same results."""
    first = ran(program, inputs, under_test, **(before or {}))
    assert hint in [o.hint for o in first.clones]
    second = ran(changed, inputs, under_test, **(after or {}))
    assert second.clones == ()
    torch.testing.assert_close(second.result, first.result)
    if same_inputs:
        torch.testing.assert_close(second.inputs, first.inputs)


def expected(hint: str) -> list[str]:
    """Return the list that a hint says to paste."""
    _, found, line = hint.partition(LIST)
    assert found, hint
    return eval(compile(ast.parse(line, mode="eval"), "hint", "eval"), {"__builtins__": {}})


def meant(program: Callable[..., Any], inputs: tuple[Any, ...], says: str, under_test: str) -> None:
    """Hold that a clone is told as needed, and that the line to paste is what assert_clones wants."""
    clones = ran(program, inputs, under_test).clones
    hints = [o.hint for o in clones if LIST in o.hint]
    assert hints and all(hint.startswith(says) for hint in hints)
    for hint in hints:
        assert sorted(expected(hint)) == sorted(o.label for o in clones)


ones = torch.ones
EIGHT = ones(8), torch.arange(8.0)
SQUARE = (torch.arange(16.0).reshape(4, 4),)
PLACE = torch.tensor([1])
