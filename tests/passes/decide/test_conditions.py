"""Each condition of legality: the program where it forbids, and its twin where it must not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace.passes import Reason, Report, reinplace
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange, functional, ops

SCALE, BOTH = "reinplace_test::scale.x", "reinplace_test::both"


def judged(fn: Callable[..., Any], *args: Any, v2: bool = True, dynamic: bool = False) -> Report:
    """Rewrite the program's graph, check it against the functional one, and return the report."""
    gm, inputs = functional(fn, *args, v2=v2, dynamic=dynamic)
    rewritten = copy.copy(gm)
    rewritten.graph = copy.deepcopy(gm.graph)
    report = reinplace(rewritten, order="keep")
    assert_equivalent(gm, rewritten, inputs)
    return report


def reasons(report: Report) -> list[tuple[str, Reason]]:
    return [(o.label, o.reason) for o in report.outcomes if o.reason is not None]


@pytest.fixture(params=["v1", "v2"])
def v2(request: pytest.FixtureRequest) -> bool:
    """Both forms of the wrapper must be decided alike."""
    return request.param == "v2"


def test_a_value_read_later_is_cloned(v2: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        old = x * 2
        new = old.clone()
        ops.scale(new, y)
        return new + old

    report = judged(program, arange(4), arange(4), v2=v2)
    assert reasons(report) == [("aten::clone.self", Reason.OVERWRITTEN)]
    first = report.outcomes[0].blockers[0]
    assert first.node.startswith("auto_functionalized") and first.op == "reinplace_test::scale"


def test_a_value_read_earlier_is_not(v2: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        old = x * 2
        total = old.sum()
        new = old.clone()
        ops.scale(new, y)
        return new + total

    assert judged(program, arange(4), arange(4), v2=v2).clones == []


def test_other_bytes_may_be_read_later(v2: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        old = x * 2
        left, right = old[::2], old[1::2]
        new = left.clone()
        ops.scale(new, y)
        return new + right

    assert judged(program, arange(8), arange(4), v2=v2).clones == []


def test_an_input_that_is_never_written_back_is_cloned(v2: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        new = x.clone()
        ops.scale(new, y)
        return new + 1

    report = judged(program, arange(4), arange(4), v2=v2)
    assert reasons(report) == [("aten::clone.self", Reason.OVERWRITTEN)]


def test_an_input_that_is_written_back_is_not(v2: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ops.scale(x, y)
        return x + 1

    report = judged(program, arange(4), arange(4), v2=v2)
    assert report.clones == [] and report.reinplaced == [SCALE]


def test_an_input_that_something_else_overwrites_is_free(v2: bool) -> None:
    """The old bytes are dead once another value is copied over all of them."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        new = x.clone()
        ops.scale(new, y)
        total = new.sum()
        x.copy_(y)
        return total

    assert judged(program, arange(4), arange(4) + 1, v2=v2).clones == []


def test_a_result_that_the_overwriting_would_hit_is_cloned(v2: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        new = x.clone()
        ops.scale(new, y)
        x.copy_(y)
        return new

    report = judged(program, arange(4), arange(4) + 1, v2=v2)
    assert len(report.clones) == 1


def test_the_same_bytes_as_two_operands_are_cloned(v2: bool) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        ops.scale(x, x)
        return x + 1

    report = judged(program, arange(4), v2=v2)
    assert [r for _, r in reasons(report)][:1] == [Reason.SAME_NODE]


def test_disjoint_operands_of_one_storage_are_not(v2: bool) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        ops.scale(x[:, :2], x[:, 2:])
        return x + 1

    assert judged(program, arange(4, 4), v2=v2).clones == []


def test_two_written_operands_that_overlap_are_told_apart() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        left, right = x[:4].clone(), x[2:].clone()
        ops.both(left, right)
        return left.sum() + right.sum()

    report = judged(program, arange(6), v2=False)
    assert len(report.clones) == 2  # the caller keeps x: both copies are needed


def test_the_smaller_operand_is_copied_to_make_room(v2: bool) -> None:
    """When a small operand lies in the bytes that are written, copying it is cheaper than the rest."""

    def program(x: torch.Tensor) -> torch.Tensor:
        ops.scale(x, x[3, 3:4])
        return x + 1

    report = judged(program, arange(4, 4), v2=v2)
    assert report.reinplaced == [SCALE]
    assert reasons(report) == [("reinplace_test::scale.by", Reason.SAME_NODE)]
    assert report.clone_bytes == 4


def test_outputs_that_would_share_storage_are_kept_apart() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        new = x * 2
        return new, new.clone()

    report = judged(program, arange(4))
    assert reasons(report) == [("aten::clone.self", Reason.ESCAPES)]


def test_an_output_that_is_alone_may_live_in_the_copied_storage() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        new = x * 2
        return new.clone()

    assert judged(program, arange(4)).clones == []


def test_outputs_are_parted_at_the_cheapest_of_several_writes() -> None:
    """What is returned of ``part`` was written twice, and either write being a copy keeps it apart."""

    def program(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        new = x * 2
        head = torch.index_put(new[:60], (i,), i + 3)
        tail = torch.index_put(new[60:], (i,), i + 4)
        part = torch.index_put(tail[:10], (i,), i + 5)
        return part, head[:5], head[5:8]

    report = judged(program, arange(100).long(), torch.tensor([0, 7]))
    assert report.clone_bytes == 10 * 8


def test_an_output_that_shares_with_an_input_is_cloned_once() -> None:
    """One copy for the caller is enough; the input itself is written in place."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        new = torch.slice_scatter(x, y, 0, 0, 2)
        x.copy_(new)
        return new

    report = judged(program, arange(8, 4), arange(2, 4) + 50)
    assert report.clone_bytes == 8 * 4 * 4
    assert "aten::slice_scatter.self" in report.reinplaced


def test_an_expanded_operand_is_never_written() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        wide = (x * 2).expand(4, 4)
        new = torch.index_put(wide, (torch.tensor([0, 1]),), y)
        return new + 1

    report = judged(program, arange(4), arange(2, 4))
    assert reasons(report) == [("aten::index_put.self", Reason.SELF_OVERLAP)]


def test_a_result_may_take_the_strides_of_its_operand_where_nobody_sees_them() -> None:
    def program(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        x[:, 0][i] = 7.0
        return x.sum()

    report = judged(program, arange(4, 4), torch.tensor([1, 2]))
    assert report.clones == []


def test_a_result_whose_strides_are_seen_keeps_its_own() -> None:
    def program(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        column = (x * 2)[:, 0]
        return torch.index_put(column, (i,), x[0, 0])

    report = judged(program, arange(4, 4), torch.tensor([1, 2]))
    assert reasons(report) == [("aten::index_put.self", Reason.LAYOUT)]


def test_lists_and_missing_tensors(v2: bool) -> None:
    def program(x: torch.Tensor, y: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        mine = keep.clone()
        ops.some([x, mine, y], None)
        return mine + keep

    report = judged(program, arange(4), arange(4), arange(4), v2=v2)
    assert report.clones == ["aten::clone.self"]
    assert [label for label in report.reinplaced if "some" in label] == [
        f"reinplace_test::some.xs[{i}]" for i in range(3)
    ]


def test_an_operator_that_also_returns(v2: bool) -> None:
    def program(cache: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return ops.update(cache, value) + cache.sum()

    assert judged(program, arange(4, 4), arange(4), v2=v2).clones == []


@pytest.mark.parametrize("dynamic", [False, True])
def test_two_pools_in_one_allocation(dynamic: bool, v2: bool) -> None:
    def program(pools: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        ops.scale(pools[0], k)
        total = pools[0].sum()
        ops.scale(pools[1], v)
        return total + pools[0].sum()

    assert judged(program, arange(2, 8, 4), arange(8, 4), arange(8, 4), v2=v2, dynamic=dynamic).clones == []


def test_chains_of_writes_come_back_to_the_input() -> None:
    def program(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> None:
        x[1:3] = 0
        x[i] = v
        x.view(-1)[0] = 5.0
        x[:, 1:2].mul_(2)

    report = judged(program, arange(8, 4), torch.tensor([0, 5]), arange(2, 4))
    assert report.clones == [] and report.clone_bytes == 0


def test_bytes_that_are_only_handed_on_may_be_written() -> None:
    """The first scatter hands on the old right half, and the second replaces it before anybody looks."""

    def program(x: torch.Tensor) -> torch.Tensor:
        both = x * 2
        left, right = both[:, :2].clone(), both[:, 2:].clone()
        ops.both(left, right)
        both = torch.slice_scatter(both, left, 1, 0, 2)
        both = torch.slice_scatter(both, right, 1, 2, 4)
        return both + 1

    assert judged(program, arange(4, 4), v2=False).clones == []


def test_bytes_that_are_handed_on_to_a_reader_may_not() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        both = x * 2
        left, right = both[:, :2].clone(), both[:, 2:].clone()
        ops.both(left, right)
        half = torch.slice_scatter(both, left, 1, 0, 2)
        whole = torch.slice_scatter(half, right, 1, 2, 4)
        return whole + half[:, 2:].sum()

    assert len(judged(program, arange(4, 4), v2=False).clones) == 1


def test_a_value_without_coordinates_is_not_taken_for_the_same() -> None:
    """A result that keeps its own layout cannot be compared byte by byte with what it was made from."""

    def program(x: torch.Tensor, val: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        r = x.index_put((torch.zeros(1, dtype=torch.int64),), val)
        v = r[0:1].expand(8, 8).index_put((torch.ones(1, dtype=torch.int64),), w)
        x.copy_(v)
        return r[1:2, 0:1]

    judged(program, arange(8, 8), arange(8) + 100, arange(8) + 200)


def test_conjugated_bytes_are_other_values() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.copy_(x.conj())
        return torch.view_as_real(x.conj().clone()) * 2

    judged(program, torch.complex(arange(4), arange(4) + 1))


def test_the_blockers_name_the_users_line() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        old = x * 2
        new = torch.index_put(old, (torch.tensor([0]),), y[0])
        return new + old

    report = judged(program, arange(4), arange(4))
    (outcome,) = [o for o in report.outcomes if not o.reinplaced]
    assert outcome.label == "aten::index_put.self" and outcome.reason is Reason.STILL_READ
    assert outcome.source is not None and "test_conditions.py:" in outcome.source
    assert outcome.blockers[0].op == "aten::add"
    line = int(outcome.blockers[0].source.rsplit(":", 1)[1])  # type: ignore[union-attr]
    assert line == int(outcome.source.rsplit(":", 1)[1]) + 1
    assert "still read" in str(report) and outcome.hint
