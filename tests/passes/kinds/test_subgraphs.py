"""Branches, called regions, mapped functions: what is in place in them and around them, what must not be."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops.invoke_subgraph import mark_compile_region
from torch._higher_order_ops.map import map as mapped

from pytest_reinplace.passes import Reason, Report, RewriteError, analyze_graph, reinplace
from pytest_reinplace.passes.graph.emit import Emitter
from pytest_reinplace.passes.verify import assert_equivalent

from ..nested import Tensor, check, loop, put, rewritten, row, shared, text, twin, write_or_keep
from ..trace import arange, functional, ops


def test_a_branch_does_not_write_what_it_is_given_twice() -> None:
    def fn(flag: Tensor, x: Tensor) -> Tensor:
        def write(x: Tensor, y: Tensor) -> Tensor:
            return row(x, y[0] + 1) + y

        result: Tensor = torch.cond(flag, write, lambda x, y: x.clone() + y, (x * 1, x * 1))
        return result

    shared(fn, torch.tensor(True), arange(4, 3))


def test_a_branch_writes_a_copy_of_an_operand() -> None:
    def fn(flag: Tensor, x: Tensor, v: Tensor) -> Tensor:
        return write_or_keep(flag, x * 2, v) + 1

    report, _ = rewritten(fn, torch.tensor(True), arange(4, 3), arange(3), also=[False])
    assert report.clones == ["aten::clone.self"] * 2 and len(report.reinplaced) == 1


def test_a_branch_that_makes_its_result_anew_keeps_the_other_functional() -> None:
    def fn(flag: Tensor, x: Tensor, v: Tensor) -> Tensor:
        result: Tensor = torch.cond(flag, lambda x, v: row(x, v), lambda x, v: x + v, (x * 2, v))
        return result + 1

    report, _ = rewritten(fn, torch.tensor(True), arange(4, 3), arange(3), also=[False])
    assert not any(label.startswith("cond") for label in report.reinplaced)


def test_a_result_of_branches_is_written_by_what_follows() -> None:
    def fn(flag: Tensor, x: Tensor) -> Tensor:
        result: Tensor = torch.cond(flag, lambda x: x * 2, lambda x: x + 5, (x,))
        ops.scale(result, x[0, :1])
        return result

    report, _ = rewritten(fn, torch.tensor(True), arange(4, 3), also=[False])
    assert report.clones == []


def test_an_operand_of_which_only_the_size_is_used_is_not_read() -> None:
    def fn(flag: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = x * 2
        result = torch.cond(flag, lambda h: h.new_ones(2), lambda h: h.new_zeros(2), (hidden,))
        ops.scale(hidden, x[0, :1])  # would be refused if a branch read it later on
        later = torch.cond(flag, lambda h: torch.ones_like(h), lambda h: torch.zeros_like(h), (hidden,))
        return hidden + result.sum(), later

    report, _ = rewritten(fn, torch.tensor(True), arange(4, 3), also=[False])
    assert report.clones == []


def hand_on(branch: Any) -> None:
    """Let a branch return its operand instead of a clone: what tracing never makes, a pass may."""
    (clone,) = branch.graph.find_nodes(op="call_function", target=torch.ops.aten.clone.default)
    clone.replace_all_uses_with(clone.args[0])
    branch.graph.erase_node(clone)
    branch.recompile()


def test_what_is_handed_on_unread_is_read_by_whoever_reads_the_result() -> None:
    def fn(flag: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        hidden = x * 2
        new = torch.slice_scatter(hidden, v.reshape(1, 3), 0, 0, 1)
        old = hidden.clone()
        return new + 1, torch.cond(flag, lambda h: h.clone(), lambda h: h.clone(), (old,)) * 3

    gm, inputs = functional(fn, torch.tensor(True), arange(4, 3), arange(3))
    for branch in (gm.true_graph_0, gm.false_graph_0):
        hand_on(branch)
    before = twin(gm)
    report = reinplace(gm, order="keep")
    check(before, gm, inputs, also=[False])
    assert "aten::slice_scatter.self" not in report.reinplaced


@pytest.mark.parametrize("hands_on", [False, True])
def test_a_branch_that_hands_its_operand_on(hands_on: bool) -> None:
    def fn(flag: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = x * 2
        result = torch.cond(flag, lambda h: h.clone(), lambda h: h + 1, (hidden,))
        ops.scale(hidden, x[0, :1])
        return hidden, result

    gm, inputs = functional(fn, torch.tensor(True), arange(4, 3))
    if hands_on:
        hand_on(gm.true_graph_0)
    before = twin(gm)
    report = reinplace(gm)
    check(before, gm, inputs, also=[False])
    expected = [(Reason.UNKNOWN_OP, "reinplace_test::scale.x")] if hands_on else []
    kept = [(o.reason, o.label) for o in report.outcomes if o.op == "reinplace_test::scale" and o.reason]
    assert kept == expected


def test_a_branch_that_returns_one_tensor_twice() -> None:
    def fn(flag: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        one, two = torch.cond(flag, lambda h: (h * 2, h * 2), lambda h: (h + 1, h + 2), (x,))
        ops.scale(one, x[0, :1])
        return one, two + 1

    gm, inputs = functional(fn, torch.tensor(True), arange(4, 3))
    branch = gm.true_graph_0
    output = next(iter(branch.graph.find_nodes(op="output")))
    output.args = ((output.args[0][0], output.args[0][0]),)
    branch.graph.eliminate_dead_code()
    branch.recompile()
    before = twin(gm)
    report = reinplace(gm)
    check(before, gm, inputs, also=[False])
    assert report.clones == ["reinplace_test::scale.x"]


@mark_compile_region
def region(x: Tensor, v: Tensor) -> Tensor:
    return row(x, v) * 1 if x.shape[0] == 1 else row(x, v)


def test_a_region_that_is_called_twice_is_rewritten_once() -> None:
    def fn(x: Tensor, v: Tensor) -> Tensor:
        return region(region(x * 2, v), v * 2) + 1

    report, gm = rewritten(fn, arange(4, 3), arange(3))
    assert text(gm).count("aten.clone") == len(report.clones) == 1


@pytest.mark.parametrize("v2", [False, True])
def test_a_wrapper_inside_a_mapped_function_writes_in_place(v2: bool) -> None:
    def fn(xs: Tensor, by: Tensor) -> Tensor:
        def one(x: Tensor, by: Tensor) -> Tensor:
            hidden = x * 2
            ops.scale(hidden, by)
            return hidden

        result: Tensor = mapped(one, xs, by)
        return result + 1

    report, _ = rewritten(fn, arange(4, 3), arange(3), v2=v2)
    assert report.reinplaced == ["reinplace_test::scale.x"] and report.clones == []


def test_an_operand_of_a_mapped_function_is_never_written() -> None:
    def fn(xs: Tensor, v: Tensor) -> Tensor:
        result: Tensor = mapped(lambda x, v: row(x, v), xs * 2, v)
        return result

    report, _ = rewritten(fn, arange(2, 4, 3), arange(3))
    assert len(report.clones) == 1 and not any("map" in label for label in report.reinplaced)


@pytest.mark.parametrize("channels", [1, 2])
def test_what_is_returned_keeps_the_strides_of_dimensions_of_one(channels: int) -> None:
    """What is joined of two tensors of one channel goes by them."""

    def fn(flag: Tensor, x: Tensor, y: Tensor, index: Tensor) -> Tensor:
        def put(x: Tensor) -> Tensor:
            return torch.ops.aten.scatter.value(x * 3, 0, index, 7)

        one = torch.cond(flag, put, lambda x: put(x + 1), (x * 2,))
        two = torch.cond(flag, put, lambda x: put(x + 1), (y * 2,))
        return torch.cat([one, two], 1)

    x = torch.arange(24 * channels).view(2, 3, 4, channels).permute(0, 3, 1, 2)
    index = torch.zeros(1, channels, 3, 4, dtype=torch.int64)
    rewritten(fn, torch.tensor(True), x, x + 50, index, also=[False])


def test_a_failure_leaves_the_graph_and_all_subgraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(flag: Tensor, x: Tensor, v: Tensor) -> Tensor:
        hidden = x * 2
        return write_or_keep(flag, hidden, v) + hidden

    gm, inputs = functional(fn, torch.tensor(True), arange(4, 3), arange(3))
    before, said = twin(gm), text(gm)

    def fail(*_: Any) -> Any:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(Emitter, "call", fail)
    with pytest.raises(RewriteError):
        reinplace(gm)
    assert text(gm) == said
    assert_equivalent(before, gm, inputs)


def test_a_subgraph_may_be_left_out() -> None:
    def fn(times: Tensor, x: Tensor, v: Tensor) -> Tensor:
        (state,) = loop(times, lambda i, s: (put(i, s, v),), x * 1)
        return state + 1

    gm, _ = functional(fn, torch.tensor(3), arange(4, 3), arange(3))
    assert analyze_graph(gm.graph).outcomes == ()


def test_an_outcome_says_which_graph_it_is_in() -> None:
    def nested(flag: Tensor, x: Tensor, v: Tensor) -> Tensor:
        hidden = x * 2
        hidden = write_or_keep(flag, hidden, v)
        hidden = hidden + 1
        ops.scale(hidden, v)
        return hidden

    def fn(flag: Tensor, x: Tensor, v: Tensor) -> Tensor:
        result: Tensor = torch.cond(flag, nested, lambda flag, x, v: row(x * 3, v), (flag, x, v))
        ops.scale(result, v)
        return result

    gm, inputs = functional(fn, torch.tensor(True), arange(4, 3), arange(3))
    before = twin(gm)
    report = reinplace(gm)
    check(before, gm, inputs, also=[False])
    paths = [o.graph for o in report.outcomes]
    assert "" in paths and len(set(paths)) == 5 and sum("." in path for path in set(paths)) == 2
    for outcome in report.outcomes:
        module = before.get_submodule(outcome.graph)
        assert outcome.node in [n.name for n in module.graph.nodes]
        assert outcome.graph in str(outcome)
    assert Report.from_dict(report.to_dict()) == report
    older = report.to_dict()
    for data in older["outcomes"]:
        del data["graph"]
    assert [o.graph for o in Report.from_dict(older).outcomes] == [""] * len(paths)


def test_an_outcome_of_the_graph_itself_names_no_graph() -> None:
    gm, _ = functional(lambda x, v: row(x * 2, v) + 1, arange(4, 3), arange(3))
    assert {o.graph for o in reinplace(gm).outcomes} == {""}
