"""Kernels that Inductor calls, in place where it would call the functional one too, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._inductor import config

from pytest_reinplace.passes import ReinplacePass
from pytest_reinplace.passes.fuzz.builder import GraphBuilder

aten = torch.ops.aten


def reinplaced(op: Any, device: str, *others: tuple[int, ...], dim: int | None = None) -> list[str]:
    """Compute an input anew, and return what is in place of it."""
    b = GraphBuilder()
    with b.fake_mode:
        x, *rest = (b.operand(torch.empty(size, device=device)) for size in ((4, 4), *others))
    b.call(aten.copy_.default, x, b.call(op, x, *rest) if dim is None else b.call(op, x, dim))
    b.finished([])
    return ReinplacePass().apply(b.graph).reinplaced


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans_have_a_kernel_on_a_cpu_alone(name: str) -> None:
    op = getattr(aten, name).default
    assert reinplaced(op, "cpu", dim=0) == [f"aten::{name}.self"]
    assert reinplaced(op, "cuda", dim=0) == []


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("setting", ["max_autotune", "max_autotune_gemm"])
def test_a_product_is_added_in_place_where_its_kernel_is_not_chosen(setting: str, device: str) -> None:
    """A template may take in what uses the product."""
    assert reinplaced(aten.addmm.default, device, (4, 3), (3, 4)) == ["aten::addmm.self"]
    with config.patch(setting, True):
        assert reinplaced(aten.addmm.default, device, (4, 3), (3, 4)) == []


@pytest.mark.parametrize("op", [aten.addmm.default, aten.cumsum.default])
def test_what_is_computed_is_not_written_for_that(op: Any) -> None:
    """Inductor would not use its memory again, as it does with what a kernel returns."""
    b = GraphBuilder()
    with b.fake_mode:
        x = b.operand(torch.empty(4, 4))
    product = b.call(aten.mm.default, x, x)
    b.finished([b.call(op, product, *((x, x) if op is aten.addmm.default else (0,)))])
    assert ReinplacePass().apply(b.graph).reinplaced == []


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_product_is_added_to_a_part_where_it_is_stored_there(is_stored: bool) -> None:
    """``y[:2] -= a @ b``, beside the product of a part that goes elsewhere."""
    b = GraphBuilder()
    with b.fake_mode:
        x, rows = b.operand(torch.empty(4, 4)), b.operand(torch.empty(2, 4))
    whole = b.call(aten.mm.default, x, x)
    added = b.call(aten.addmm.default, b.call(aten.slice.Tensor, whole, 0, 0, 2), rows, x)
    b.finished([b.call(aten.slice_scatter.default, whole, added, 0, 0, 2) if is_stored else added])
    assert ("aten::addmm.self" in ReinplacePass().apply(b.graph).reinplaced) is is_stored
