"""Finding rules, asserts, and the option that puts all rules into Inductor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pytest_reinplace.passes import ReinplaceError, inductor_options, post_grad
from pytest_reinplace.passes.inductor.protect import ProtectPass, RulesPass
from pytest_reinplace.passes.verify import copied

from ..trace import arange, functional
from .stages import by_rule

aten = torch.ops.aten
Tensor = torch.Tensor
HELPERS = {"held", "__init__", "ground", "rule", "sharing", "times"}


def test_every_file_is_a_rule_in_the_order() -> None:
    files = {path.stem for path in Path(post_grad.__file__).parent.glob("*.py")} - HELPERS
    assert files == set(post_grad.ORDER) and len(set(post_grad.ORDER)) == len(post_grad.ORDER)
    assert [post_grad.find(name).name for name in post_grad.ORDER] == list(post_grad.ORDER)


def test_another_name_is_an_error_that_lists_them() -> None:
    told = "expected one of the rules no_ops, neutral, .*, got 'cat_of_splits'; did you mean 'cat_of_split'"
    with pytest.raises(KeyError, match=told):
        post_grad.find("cat_of_splits")


def noted(x: Tensor) -> Tensor:
    return x.double().float().clone() * 2


def test_a_rule_alone_tells_what_it_did() -> None:
    applied, gm = by_rule("no_ops", noted, arange(2, 3))
    assert applied.rule == "no_ops" and applied.rewritten == ("clone",) and not applied.refused
    assert "clone" not in gm.code


def copied_part(x: Tensor) -> Tensor:
    return x[1:].clone().as_strided((2,), (1,), 1) * 2


def joined_part(x: Tensor) -> Tensor:
    return torch.cat(torch.split_with_sizes(x[1:], [1, 2], 1), 1).as_strided((2,), (1,), 1) * 2


def unchanged_part(x: Tensor) -> Tensor:
    return (x[1:] * 1).as_strided((2,), (1,), 1) * 2


COUNTING = {"no_ops": copied_part, "cat_of_split": joined_part, "neutral": unchanged_part}


@pytest.mark.parametrize("name", COUNTING)
def test_what_counts_from_where_a_copy_begins_needs_the_copy(name: str) -> None:
    """From where its operand begins that is something else."""
    _, gm = by_rule(name, COUNTING[name], arange(2, 3))
    assert any(n.target is aten.clone.default for n in gm.graph.nodes)


def widened(x: Tensor) -> Tensor:
    return x[1:5].clone().view(torch.int64) * 2


def widened_later(x: Tensor) -> Tensor:
    return torch.slice_scatter(x[1:5].clone(), x[:1], 0, 0, 1).view(torch.int64) * 2


def counted_later(x: Tensor) -> Tensor:
    return torch.slice_scatter(x[1:5].clone(), x[:1], 0, 0, 1).as_strided((2,), (1,), 1) * 2


@torch.compiler.nested_compile_region
def _region(y: Tensor) -> Tensor:
    return y.view(torch.int64) + 1


def widened_in_a_region(x: Tensor) -> Tensor:
    return _region(x[1:5].clone()) * 2


@pytest.mark.parametrize("program", [widened, widened_later, widened_in_a_region, counted_later])
def test_what_a_copy_is_handed_on_to_may_need_it(program: Callable[[Tensor], Tensor]) -> None:
    """Items of 8 bytes cannot begin between two of 4; Inductor's own rule drops the copy, and fails."""
    applied, _ = by_rule("no_ops", program, torch.arange(6, dtype=torch.int32))
    assert "clone" in [str(r.node) for r in applied.refused]


def narrowed(x: Tensor) -> Tensor:
    return x[1:5].clone().view(torch.int16) * 2


def test_narrower_items_need_no_copy() -> None:
    applied, _ = by_rule("no_ops", narrowed, torch.arange(6, dtype=torch.int32))
    assert "clone" in applied.rewritten and not applied.refused


def mirrored(x: Tensor) -> Tensor:
    y = x * 2
    return torch.select_scatter(y, y[2].clone(), 0, 0)


def mirrored_by_slices(x: Tensor) -> Tensor:
    y = x * 2
    return torch.slice_scatter(y, y[2:].clone(), 0, 0, 2)


def stored_where_it_was(x: Tensor) -> Tensor:
    y = x * 2
    return torch.slice_scatter(y, y[1:3].clone(), 0, 1, 3)


def turned_where_it_was(x: Tensor) -> Tensor:
    y = x[:, :2] * 2
    return torch.slice_scatter(y, y[1:3].clone().t(), 0, 1, 3)


def moved_along(x: Tensor) -> Tensor:
    y = x * 2
    return torch.slice_scatter(y, y[1:].clone(), 0, 0, 3)


def moved_to_a_stride(x: Tensor) -> Tensor:
    y = x * 2
    return torch.slice_scatter(y, y[:2].clone(), 0, 0, 4, 2)


def test_with_symbols_such_a_copy_stays() -> None:
    applied, _ = by_rule("no_ops", mirrored, arange(4, 3), dynamic=True)
    assert [str(r.node) for r in applied.refused] == ["clone"]


@pytest.mark.parametrize(
    ("program", "is_kept"),
    [
        *((mirrored, False), (mirrored_by_slices, False), (stored_where_it_was, False)),
        *((turned_where_it_was, True), (moved_along, True), (moved_to_a_stride, True)),
    ],
)
def test_a_copy_stored_beside_what_it_is_made_of_is_none(
    program: Callable[[Tensor], Tensor], is_kept: bool
) -> None:
    """Where the two overlap, the whole would have to be copied for the copy of a part."""
    _, gm = by_rule("no_ops", program, arange(4, 3))
    assert any(n.target is aten.clone.default for n in gm.graph.nodes) is is_kept


@pytest.mark.parametrize("stage", ["reinplace", "post_grad"])
def test_inductor_keeps_that_copy_too(stage: str) -> None:
    torch.compiler.reset()
    options = inductor_options(stage=stage)  # type: ignore[arg-type]
    compiled = torch.compile(copied_part, fullgraph=True, options=options)
    assert torch.equal(compiled(arange(2, 3)), copied_part(arange(2, 3)))


def test_what_is_asserted_and_known_goes() -> None:
    gm, _ = functional(noted, arange(2, 3))
    given = next(iter(gm.graph.nodes))
    target = aten._assert_tensor_metadata.default
    with gm.graph.inserting_after(given):
        for size, stride, dtype in (
            ([2, 3], [3, 1], torch.float32),
            ([2, 4], None, None),
            (None, [1, 2], None),
        ):
            gm.graph.call_function(target, (given, size, stride, dtype)).meta["val"] = None
        gm.graph.call_function(target, (given, None, None, torch.int8)).meta["val"] = None
    applied = post_grad.find("asserts").apply(gm)
    assert len(applied.rewritten) == 1
    assert sorted(r.reason for r in applied.refused) == [
        "the dtype is another one",
        "the size is not known",
        "the stride is not known",
    ]


def test_the_stage_is_chosen() -> None:
    ours = inductor_options(stage="post_grad")
    assert isinstance(ours["post_grad_custom_pre_pass"], RulesPass)
    assert ours["joint_custom_pre_pass"] == ProtectPass(stage="post_grad")
    assert "post_grad_custom_pre_pass" not in inductor_options()
    assert ours["joint_custom_pre_pass"].uuid() != inductor_options()["joint_custom_pre_pass"].uuid()
    with pytest.raises(ReinplaceError, match="expected stage to be 'reinplace' or 'post_grad', got 'all'"):
        inductor_options(stage="all")  # type: ignore[arg-type]


def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """One place for each rule, and a write behind it."""
    whole = torch.cat(torch.split(x, [2, 3], 1), 1)
    halves = torch.split(torch.cat([x.half(), y], 1), [5, 2], 1)
    count = torch.full((4,), 2.7, dtype=torch.int64).cumsum(0)
    sign = torch.signbit(x + torch.zeros(2, 5))
    x.add_(1)
    return whole, halves[0] * 1.5, halves[1] * 1.5, count, sign


def test_inductor_with_all_rules_is_right() -> None:
    inputs = [-torch.zeros(2, 5), arange(2, 2)]
    expected, given = [t.clone() for t in inputs], [t.clone() for t in inputs]
    torch.compiler.reset()
    compiled = torch.compile(program, fullgraph=True, options=inductor_options(stage="post_grad"))
    for one, other in zip(compiled(*given), program(*expected), strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other)
        assert all(one.untyped_storage().data_ptr() != t.untyped_storage().data_ptr() for t in given)
    assert all(map(torch.equal, given, expected))


def test_a_rule_that_fails_leaves_the_graph(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gm, _ = functional(program, arange(2, 5), arange(2, 2))
    before = str(copied(gm).graph)
    monkeypatch.setattr("pytest_reinplace.passes.post_grad.cumsum._why_not", lambda *_: 1 / 0)
    RulesPass()(gm.graph)
    assert str(gm.graph) == before
    assert "Inductor's own rules decide: ZeroDivisionError" in caplog.text
