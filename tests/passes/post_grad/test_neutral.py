"""Arithmetic with a constant that changes nothing goes, unless it does change something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.fx_passes.joint_graph import constant_fold_uniform_value

from pytest_reinplace import AssertGraph
from pytest_reinplace.passes.inductor.protect import ProtectPass
from pytest_reinplace.passes.post_grad import find
from pytest_reinplace.passes.verify import copied

from ..trace import arange, functional
from .stages import assert_same, by_rule
from .test_cat_of_split import targets

aten = torch.ops.aten
Tensor = torch.Tensor
ARITHMETIC = {aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor}


def through_folding(
    fn: Callable[..., Any], *args: Any, ours: bool = True, stage: Any = "post_grad"
) -> torch.fx.GraphModule:
    """Return a graph behind Inductor's folding of constants, which must be right when ours came before."""
    gm, inputs = functional(fn, *args)
    after = copied(gm)
    if ours:
        ProtectPass(stage=stage)(after.graph)
    constant_fold_uniform_value(after)
    if ours:
        ProtectPass(stage=stage, is_last=True)(after.graph)
        assert_same(gm, after, inputs)
    after.graph.lint()
    return after


def signed() -> Tensor:
    return torch.tensor([[-0.0, 0.0, 1.5], [float("nan"), float("-inf"), -2.0]])


FOLDED: list[Callable[..., Any]] = [
    lambda x: (x - torch.zeros(2, 3)) * 2,
    lambda x: (x * torch.ones(2, 3)) * 2,
    lambda x: (torch.ones(2, 3) * x) * 2,
    lambda x: (x / torch.ones(2, 3)) * 2,
    lambda x: (x + torch.full((2, 3), -0.0)) * 2,
    lambda x: (x - 0.0) * 2,
    lambda x: (x * 1) * 2,
    lambda x: (x / 1) * 2,
    lambda x: (x + -0.0) * 2,
    lambda x: (x * torch.ones(3, 2).t()[0, 0].expand(2, 3)) * 2,
]


@pytest.mark.parametrize("program", FOLDED, ids=map(str, range(len(FOLDED))))
def test_it_is_the_operand(program: Callable[..., Any]) -> None:
    applied, gm = by_rule("neutral", program, signed())
    assert len(applied.rewritten) == 1 and aten.clone.default not in targets(gm)
    assert sum(target in ARITHMETIC for target in targets(gm)) == 1
    through_folding(program, signed())


def returned(x: Tensor) -> Tensor:
    return x * torch.ones(2, 3)


def a_number(x: Tensor) -> Tensor:
    y = x * 1
    x.add_(1)
    return y


def then_written(x: Tensor) -> Tensor:
    y = x - torch.zeros(2, 3)
    x.add_(1)
    return y


def beside_another(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.sin()
    return y, y / torch.ones(2, 3)


@pytest.mark.parametrize("program", [returned, a_number, then_written, beside_another])
def test_it_is_a_copy_where_it_is_told_apart(program: Callable[..., Any]) -> None:
    applied, gm = by_rule("neutral", program, signed())
    assert len(applied.rewritten) == 1 and targets(gm).count(aten.clone.default) == 1
    through_folding(program, signed())


@pytest.mark.parametrize("program", [returned, a_number, then_written, beside_another])
def test_by_default_the_copy_is_kept_too(program: Callable[..., Any]) -> None:
    """Torch 2.15 folds numbers as well."""
    through_folding(program, signed(), stage="reinplace")


CONVERTED: list[tuple[Callable[..., Any], str]] = [
    (lambda x: x.int() + torch.zeros(2, 3, dtype=torch.int64), "int64"),
    (lambda x: x.int() + 0.0, "float32"),
    (lambda x: x.half() * torch.ones(2, 3), "float32"),
    (lambda x: x.int() / torch.ones(2, 3, dtype=torch.int32), "float32"),
    (lambda x: (x > 0) * torch.ones(2, 3), "float32"),
]


@pytest.mark.parametrize(("program", "dtype"), CONVERTED, ids=map(str, range(len(CONVERTED))))
def test_it_is_converted(program: Callable[..., Any], dtype: str, assert_graph: AssertGraph) -> None:
    applied, gm = by_rule("neutral", program, arange(2, 3))
    assert len(applied.rewritten) == 1
    assert_graph.matches(gm, f"{{c}} = prims.convert_element_type.default(..., {dtype})\nreturn ({{c}},)")
    through_folding(program, arange(2, 3))


def sign_of_sum(x: Tensor) -> Tensor:
    return torch.signbit(x + torch.zeros(2, 3))


def sign_of_sum_with_a_number(x: Tensor) -> Tensor:
    return torch.signbit(x + 0)


def sign_of_difference(x: Tensor) -> Tensor:
    return torch.signbit(x - torch.full((2, 3), -0.0))


def sign_of_converted(x: Tensor) -> Tensor:
    return torch.signbit(x.half() + torch.zeros(2, 3))


def sign_of_rounded(x: Tensor) -> Tensor:
    """The integer that is written as -0. is 0, and stays so."""
    return torch.signbit(x + torch.full((2, 3), -0.0, dtype=torch.int64).float())


def computed_zeros(x: Tensor) -> Tensor:
    return torch.signbit(x + torch.full((2, 3), 2.7).cos())


def complex_product(x: Tensor) -> Tensor:
    return torch.complex(x, x * 0.0 + 1) * torch.ones(2, 3, dtype=torch.complex64)


LEFT = [
    (sign_of_sum, "it changes the sign of zero"),
    (sign_of_sum_with_a_number, "it changes the sign of zero"),
    (sign_of_difference, "it changes the sign of zero"),
    (sign_of_converted, "it changes the sign of zero"),
    (sign_of_rounded, "it changes the sign of zero"),
    (computed_zeros, "the constant is not known"),
    (complex_product, "complex arithmetic changes zeros and infinities"),
    (lambda x: x + torch.zeros(3, 2, dtype=torch.int64).t(), "it changes the sign of zero"),
    (lambda x: torch.ones(2, 3) / x, "the constant comes first"),
]


@pytest.mark.parametrize(("program", "reason"), LEFT, ids=map(str, range(len(LEFT))))
def test_what_changes_something_stays_and_is_hidden(program: Callable[..., Any], reason: str) -> None:
    applied, _ = by_rule("neutral", program, signed())
    assert [r.reason for r in applied.refused] == [reason] and not applied.rewritten
    gm = through_folding(program, signed())
    assert not any("other" in n.kwargs for n in gm.graph.nodes)  # written again as it was


def test_without_the_rule_the_sign_is_lost() -> None:
    gm, (x,) = functional(sign_of_sum, signed())
    assert through_folding(sign_of_sum, signed(), ours=False)(x)[0].tolist() != gm(x)[0].tolist()


def broadcast(x: Tensor) -> Tensor:
    return x[0] + torch.zeros(2, 3, dtype=torch.int64)


def with_another_constant(x: Tensor) -> Tensor:
    return x + torch.full((2, 3), 2.0)


def test_a_sum_of_another_shape_stays_and_another_constant_is_none_of_its_places() -> None:
    applied, _ = by_rule("neutral", broadcast, arange(2, 3).long())
    assert [r.reason for r in applied.refused] == ["the result has another shape"]
    applied, _ = by_rule("neutral", with_another_constant, arange(2, 3))
    assert not applied.refused and not applied.rewritten


COPIED: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: x[:, :2] * torch.ones(2, 2), aten.clone.default),
    (
        lambda x: x[:, :2] * torch.ones(2, 2, dtype=torch.float64),
        torch.ops.prims.convert_element_type.default,
    ),
    (lambda x: x - torch.zeros(2, 3, dtype=torch.int32).neg(), aten.neg.default),
    (
        lambda x: (x > 0) * torch.ones(2, 3, dtype=torch.complex64),
        torch.ops.prims.convert_element_type.default,
    ),
]


@pytest.mark.parametrize(("program", "made"), COPIED, ids=map(str, range(len(COPIED))))
def test_what_is_laid_out_in_another_way_is_a_copy_as_it_is_laid_out(
    program: Callable[..., Any], made: Any
) -> None:
    """Also of what has gaps; constants may be computed of small whole numbers, and be complex."""
    applied, gm = by_rule("neutral", program, signed())
    assert len(applied.rewritten) == 1 and made in targets(gm) and not ARITHMETIC & set(targets(gm))


def test_a_number_of_no_number_and_zero_is_kept() -> None:
    """Inductor takes a product with the integer 0 for zeros."""
    through_folding(lambda x: (x * 0, x + 1), signed())


@pytest.mark.parametrize("value", [1.5, 1.0000000001, 1e-50, -255])
def test_a_constant_that_its_dtype_rounds_is_not_taken_for_another(value: float) -> None:
    dtype = torch.uint8 if value == -255 else torch.int64 if value == 1.5 else torch.float32

    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        constant = torch.full((2, 3), value, dtype=dtype).view(3, 2).view(2, 3)
        return x.sin() * constant, x.sin()

    through_folding(program, arange(2, 3))


def test_a_constant_that_is_written_is_not_known() -> None:
    gm, inputs = functional(lambda x: x.long() + torch.zeros(2, 3, dtype=torch.int64), arange(2, 3))
    (full,) = gm.graph.find_nodes(op="call_function", target=aten.full.default)
    with gm.graph.inserting_after(full):
        gm.graph.call_function(aten.fill_.Scalar, (full, 5)).meta["val"] = full.meta["val"]
    after = copied(gm)
    assert [r.reason for r in find("neutral").apply(after).refused] == ["the constant is not known"]
    assert_same(gm, after, inputs)
