"""User Triton kernels: what the pass decides is run, interpreted without a GPU, and is the optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from pytest_reinplace.capture import triton_cpu
from pytest_reinplace.passes import reinplace
from pytest_reinplace.passes.verify import assert_equivalent, copied_bytes, minimum_clone_bytes

from ..trace import arange, functional

Tensor = torch.Tensor


@pytest.fixture
def device() -> Iterator[str]:
    """Where kernels run: on a GPU, for which Triton compiles them, or interpreted on the CPU."""
    pytest.importorskip("triton")
    with triton_cpu.capturing(), triton_cpu.executing():
        yield "cuda" if torch.cuda.is_available() else "cpu"


def launch(out: Tensor, other: Tensor) -> None:
    from ...reports.kernels import add_to

    add_to(out, other)


def into_input(x: Tensor, v: Tensor) -> None:
    launch(x, v)


def kept_input(x: Tensor, v: Tensor) -> Tensor:
    y = x.clone()
    launch(y, x)
    return y


def twice_the_same(x: Tensor, v: Tensor) -> Tensor:
    y = x * 2
    launch(y, y)
    return y


def chain(x: Tensor, v: Tensor) -> Tensor:
    y = x * 2
    launch(y, v)
    launch(y, x)
    return y + 1


def read_later(x: Tensor, v: Tensor) -> Tensor:
    y = x * 2
    z = y.clone()
    launch(z, v)
    return y + z


BYTES = 16 * 4


@pytest.mark.parametrize(
    ("fn", "least"),
    [(into_input, 0), (kept_input, BYTES), (twice_the_same, BYTES), (chain, 0), (read_later, BYTES)],
)
def test_kernels(fn: Callable[..., Any], least: int, device: str) -> None:
    x, v = arange(16).to(device), (arange(16) + 3).to(device)
    gm, inputs = functional(fn, x, v)
    rewritten, _ = functional(fn, x, v)
    wrappers = [n for n in gm.graph.nodes if "triton_kernel_wrapper_functional" in str(n.target)]
    # Were the kernel not analysed, every argument would count as written.
    assert wrappers and all(n.kwargs["tensors_to_clone"] == ["out_ptr"] for n in wrappers)
    reinplace(rewritten)
    assert_equivalent(gm, rewritten, inputs)
    assert copied_bytes(rewritten, gm) == least == minimum_clone_bytes(gm, inputs)


def test_a_blocker_is_named_by_its_kernel(device: str) -> None:
    def program(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        y, out = x * 2, v * 2
        new = torch.index_put(y, (torch.zeros(1, dtype=torch.int64, device=y.device),), v[:1])
        launch(out, y)
        return new, out

    gm, _ = functional(program, arange(16).to(device), (arange(16) + 3).to(device))
    report = reinplace(gm, order="keep")
    (blocker,) = next(o for o in report.outcomes if o.op == "aten::index_put").blockers
    kernel = next(o.op for o in report.outcomes if o.op != "aten::index_put")
    assert blocker.op == kernel and "triton" not in blocker.op
