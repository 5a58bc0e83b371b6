"""What the backward is given of an input that the forward wrote.

AOTAutograd lets the backward write its results into what only it was given (``donated_buffer``). A view of an
input that a kernel wrote is a fresh tensor to AOTAutograd, so in it results of the backward would be written
into the caller's tensor. So it is a copy with us, which is one of the reasons to hold more in training than
Inductor does by itself.
"""

from __future__ import annotations

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

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
