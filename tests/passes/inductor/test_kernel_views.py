"""Views that kernels return: a read of one is not scheduled before a write through another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import _dynamo as dynamo
from torch._inductor import virtualized
from torch.utils._pytree import tree_leaves

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.defects import undefended
from pytest_reinplace.passes.inductor.schedule import kernel_views, veto

from ..trace import ops
from .defect_programs import complex_windows, overlapping

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Compile anew, from no cache: what is looked for here is what the hooks do in between."""
    torch.compiler.reset()
    with torch.compiler.config.patch(force_disable_caches=True):
        yield
    torch.compiler.reset()


def rows_with_gaps() -> tuple[Tensor, Tensor]:
    x, y = (torch.arange(48).add(n).to(torch.complex64).view(8, 6)[:, 1:-1] for n in (3, 40))
    return x, y


def exchanged(x: Tensor, y: Tensor) -> None:
    x[1] *= y[0]
    x[[0, 2]] = x[[2, 0]]
    ops.scale(x.split(2)[0], y[:, 1].unfold(0, 2, 2)[0, :1])


def listed(x: Tensor, y: Tensor) -> Tensor:
    torch._foreach_mul_([x[1]], [6])
    before = x[0:4] + 6
    x[1:5] = x[0:4] * 3
    y[2:4].mul_(x[:1] * 3)
    return before + x[1:3].sum(0)


def read_before_a_fill(y: Tensor) -> tuple[Tensor, ...]:
    y[:, 0:6].scatter_(0, torch.tensor([[1], [3]]), 8)  # since then Inductor knows y by another name
    flipped, row = y.flip(0) + 4, y[1:].view(2, -1)[1] - 4
    y.fill_(8)
    places = y.nonzero()
    return flipped.sum(), row[1].clone(), places


def plain() -> tuple[Tensor]:
    return (torch.arange(52).to(torch.complex64)[1:49].view(8, 6),)


@pytest.mark.parametrize(
    ("program", "inputs", "is_complex"),
    [
        (read_before_a_fill, plain, True),
        (complex_windows, overlapping, True),
        (exchanged, rows_with_gaps, True),
        (listed, lambda: tuple(torch.arange(24).view(6, 4) + n for n in (0, 5)), False),
        (exchanged, lambda: tuple(t.real.contiguous() for t in rows_with_gaps()), False),
    ],
)
def test_compiled_programs_are_right(
    program: Callable[..., Any], inputs: Any, is_complex: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    order = kernel_views.order
    monkeypatch.setattr(kernel_views, "order", lambda nodes: waits.append(order(nodes)))
    expected, actual = inputs(), inputs()
    wanted = program(*expected)
    with dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        found = torch.compile(program, fullgraph=True, dynamic=False, options=inductor_options())(*actual)
    assert all(map(torch.equal, expected, actual))
    assert wanted is None or all(map(torch.equal, tree_leaves(wanted), tree_leaves(found)))
    assert any(waits) is is_complex


def test_a_torch_without_what_it_asks_for_compiles_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(nodes: list[Any]) -> int:
        raise AttributeError("get_aliases")

    monkeypatch.setattr(kernel_views, "order", failing)
    expected, actual = torch.arange(8.0), torch.arange(8.0)
    torch.compile(lambda x: x.mul_(2), fullgraph=True, options=inductor_options())(actual)
    assert torch.equal(actual, expected * 2)


def shifted(x: Tensor, y: Tensor) -> Tensor:
    x[1:5] = x[0:4] * 3
    return y + 1


@pytest.mark.parametrize("without", [(), ("views-by-kernels",)])
def test_inductor_knows_that_an_input_is_written_through_such_a_view(
    without: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU it copies a misaligned input, and copies back what it knows to be written."""
    written: list[str] = []
    keep = veto._torch.keep_order

    def keep_order(part: Any) -> None:
        written.extend(virtualized.V.graph.mutated_inputs)
        keep(part)

    monkeypatch.setattr(veto._torch, "keep_order", keep_order)
    with undefended(*without):
        torch.compile(shifted, fullgraph=True, options=inductor_options())(*rows_with_gaps())
    assert set(written) == (set() if without else {"arg0_1"})
