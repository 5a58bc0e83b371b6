"""Operators over lists that Inductor computes by itself: what is in memory, what each element reads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._inductor.config as inductor_config
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor import lowering
from pytest_reinplace.passes.ops import lists

from ..trace import arange

aten = torch.ops.aten


class Made:
    """Two products over a list; an operator over lists uses them, and another one if asked."""

    def __init__(self, outside: bool) -> None:
        self.builder = b = GraphBuilder()
        self.xs = [b.placeholder(arange(2)) for _ in range(2)]
        self.ys = [b.placeholder(arange(2)) for _ in range(2)]
        self.factor = b.placeholder(torch.tensor(2.0))
        self.node = b.call(aten._foreach_addcmul.Scalar, self.xs, self.ys, self.ys, 2)
        self.elements = [b.item(self.node, i) for i in range(2)]
        after = b.call(aten._foreach_mul.Tensor, self.elements, self.factor)
        self.after = [b.item(after, i) for i in range(2)]
        if outside:
            b.finished([b.call(aten.neg.default, self.elements[0]), *self.after])

    def stored(self, device: str, size: Any = 2) -> bool:
        """Tell whether the elements are in memory if they are on a device and of a size."""
        with torch._subclasses.FakeTensorMode(shape_env=ShapeEnv()) as mode:
            shape_env: Any = mode.shape_env
            chosen = shape_env.create_unbacked_symint() if size is None else size
            for element in self.elements:
                element.meta["val"] = torch.empty(chosen, device=device)
        return lowering.is_list_stored(self.node)


def test_a_gpu_stores_what_others_use() -> None:
    assert Made(outside=True).stored("cuda")


def test_a_cpu_has_no_kernel_for_lists() -> None:
    assert not Made(outside=True).stored("cpu")


def test_only_lists_store_nothing() -> None:
    made = Made(outside=False)
    assert lists.is_unstored(made.node)
    assert not made.stored("cuda")


@pytest.mark.parametrize("in_kernels", [True, False])
def test_sizes_that_are_not_known_are_stored_if_inductor_says_so(in_kernels: bool) -> None:
    with inductor_config.patch(combo_kernel_foreach_dynamic_shapes=in_kernels):
        assert Made(outside=True).stored("cuda", size=None) is in_kernels


@pytest.mark.parametrize("index", [0, 1])
def test_an_element_is_computed_from_its_own_part(index: int) -> None:
    made = Made(outside=False)
    read = list(lists.inputs_of(made.elements[index]))
    assert read == [made.xs[index], made.ys[index], made.ys[index]]


def test_all_elements_share_a_tensor() -> None:
    made = Made(outside=False)
    assert list(lists.inputs_of(made.after[1])) == [made.elements[1], made.factor]
