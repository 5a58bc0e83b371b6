"""What the backward is given of an input that the forward wrote.

AOTAutograd lets the backward write its results into what only it was given (``donated_buffer``). A view of an
input that a kernel wrote is a fresh tensor to AOTAutograd, so in it results of the backward would be written
into the caller's tensor. So it is a copy with us, which is one of the reasons to hold more in training than
Inductor does by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache, run_and_get_code
from torch.testing._internal.two_tensor import TwoTensor

from pytest_reinplace.passes import inductor_options

from ..trace import arange, ops


def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    ops.scale(x, w.detach())
    return (x * w).sin()


@pytest.mark.usefixtures("quick")
def test_the_backward_writes_no_tensor_of_the_callers() -> None:
    found = []
    for is_compiled in (False, True):
        x, w = arange(8, 8).float(), arange(8, 8).float().add(1).requires_grad_()
        torch.compiler.reset()
        with fresh_inductor_cache():
            function = (
                torch.compile(scaled, fullgraph=True, options=inductor_options()) if is_compiled else scaled
            )
            result = function(x, w)
            before = x.clone()
            result.sum().backward()
        assert torch.equal(x, before)
        found.append((x, w.grad))
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.usefixtures("quick")
def test_a_gradient_that_is_what_the_forward_stores_is_copied_in_the_backward() -> None:
    """The copy stands in front of what the forward writes, and is no part of the forward."""

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x.fill_(8)
        return (w * x).sum()

    x, w = torch.arange(24.0), torch.ones(24, requires_grad=True)
    torch.compiler.reset()
    torch.compile(program, fullgraph=True, options=inductor_options())(x, w).backward()
    assert torch.equal(x, torch.full((24,), 8.0))
    assert w.grad is not None
    assert torch.equal(w.grad, x)


def part_scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x[4:8].mul_(w[:1])
    return x


def whole_scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x.mul_(w)


def read_and_scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    z = torch.sin(x) * w
    x.mul_(w)
    return x + z


def part_moved(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x[4:8].add_(w[:1])
    return x


def gradient(function: Callable[..., torch.Tensor]) -> tuple[torch.Tensor, ...]:
    x, w = torch.arange(24.0) / 8, torch.linspace(1, 2, 24, requires_grad=True)
    result = function(x, w)
    return x, result, *torch.autograd.grad(result.sum(), [w])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", [part_scaled, whole_scaled, read_and_scaled])
def test_what_is_stored_when_the_forward_has_ended_is_not_what_the_backward_reads(
    program: Callable[..., torch.Tensor],
) -> None:
    """What then needs a gradient AOTAutograd stores itself, behind the graph, which knows nothing of it."""
    torch.compiler.reset()
    compiled = torch.compile(program, fullgraph=True, options=inductor_options())
    torch.testing.assert_close(gradient(compiled), gradient(program))


@pytest.mark.usefixtures("quick")
def test_neither_is_a_part_of_a_tensor_of_a_subclass() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        x.mul_(w)
        return x + 1

    def gradients(function: Callable[..., Any]) -> tuple[torch.Tensor, ...]:
        x = TwoTensor(torch.arange(24.0) / 8, torch.arange(24.0) / 4)
        w = TwoTensor(torch.linspace(1, 2, 24), torch.linspace(1, 2, 24)).requires_grad_()
        (found,) = torch.autograd.grad(function(x, w), [w], TwoTensor(torch.ones(24), torch.ones(24)))
        return x.a, x.b, found.a, found.b

    torch.compiler.reset()
    compiled = torch.compile(program, fullgraph=True, options=inductor_options())
    torch.testing.assert_close(gradients(compiled), gradients(program))


@pytest.mark.usefixtures("quick")
def test_a_part_of_what_is_saved_is_not_written_by_the_backward() -> None:
    """Behind the product, which Inductor folds away, a copy is put; the part that is returned lies in it."""

    def program(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = w * 1
        return z[::2], (z @ w).tanh()

    torch.compiler.reset()
    w = torch.arange(24.0, requires_grad=True)
    part, whole = torch.compile(program, fullgraph=True, options=inductor_options())(w)
    (part.sum() + whole).mul(3).backward()
    assert torch.equal(part, torch.arange(0.0, 24, 2))


@pytest.mark.usefixtures("quick")
def test_nothing_is_copied_where_the_backward_does_not_read_it() -> None:
    torch.compiler.reset()
    compiled = torch.compile(part_moved, fullgraph=True, options=inductor_options())
    with fresh_inductor_cache():
        found, (forward, _) = run_and_get_code(gradient, compiled)
    torch.testing.assert_close(found, gradient(part_moved))
    assert forward.count("= empty_strided") == 1  # what AOTAutograd stores
