"""The judge: what any pass did, read off the graph before and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.judge.before import Before, Unseen
from pytest_reinplace.judge.judge import Judgement, judge
from pytest_reinplace.passes import Reason, analyze, reinplace
from pytest_reinplace.passes.strategies import random_graph

from .graphs import add_in_place, both_v2, chain_of_scatters, functional_of, in_list, twice_v1, view_back

aten = torch.ops.aten

Pass = Callable[[torch.fx.GraphModule], Any]


def judged(gm: torch.fx.GraphModule, one_pass: Pass, unseen: Unseen | None = None) -> Judgement:
    before = Before.of(gm, unseen=unseen)
    one_pass(gm)
    return judge(before, gm.graph)


def decided(judgement: Judgement) -> list[tuple[str, bool]]:
    return [(outcome.label, outcome.reinplaced) for outcome in judgement.report.outcomes]


def nothing(gm: torch.fx.GraphModule) -> None:
    pass


def rename_inside(gm: torch.fx.GraphModule) -> None:
    """Give the calls of subgraphs other names than those of the graph: reports name nodes, not graphs."""
    for module in gm.modules():
        if module is not gm and isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                if node.op == "call_function":
                    node._rename(f"inside_{node.name}")


def tell(**told: Any) -> Pass:
    """Return a pass that decides on the wrappers, by their order, and leaves them to Inductor."""

    def one_pass(gm: torch.fx.GraphModule) -> None:
        wrappers = [n for n in gm.graph.nodes if "auto_functionalized" in str(n.target)]
        for wrapper, decision in zip(wrappers, told["wrappers"], strict=True):
            wrapper.meta["only_clone_these_tensors"] = decision

    return one_pass


@pytest.mark.parametrize(
    "program", [twice_v1, both_v2, in_list, chain_of_scatters, view_back], ids=lambda f: str(f.__name__)
)
def test_a_pass_that_does_nothing_clones_everything(program: Callable[..., Any]) -> None:
    found = judged(functional_of(program), nothing)
    assert found.report.outcomes
    assert found.report.reinplaced == []
    assert found.suspicious == ()


@pytest.mark.parametrize(
    "program", [twice_v1, both_v2, in_list, chain_of_scatters, view_back], ids=lambda f: str(f.__name__)
)
def test_our_rewrite_is_recognised_without_its_own_report(program: Callable[..., Any]) -> None:
    gm = functional_of(program)
    own = analyze(gm)
    assert decided(judged(gm, reinplace)) == [(o.label, o.reinplaced) for o in own.outcomes]


def test_decisions_on_v1_wrappers_are_read_by_name() -> None:
    found = judged(functional_of(twice_v1), tell(wrappers=[["out"], []]))
    assert decided(found) == [("judgetest::write.out", False), ("judgetest::write.out", True)]


def test_decisions_on_v2_wrappers_are_read_by_base() -> None:
    for cloned in (0, 1):
        found = judged(functional_of(both_v2), tell(wrappers=[[cloned]]))
        labels = dict(decided(found))
        assert sorted(labels.values()) == [False, True]
    assert decided(judged(functional_of(both_v2), tell(wrappers=[[]]))) == [
        ("judgetest::both.a", True),
        ("judgetest::both.b", True),
    ]


def test_a_needless_clone_is_missed_and_a_needed_one_keeps_its_reason() -> None:
    def keep(x, value):
        y = x * 2
        torch.ops.judgetest.write(y[:4], value)
        z = x * 3
        old = z.sum()
        new = z.index_put((torch.tensor([0]),), torch.ones(1))
        return y, new, z + old

    outcomes = judged(functional_of(keep, torch.ones(8), torch.ones(4)), nothing).report.outcomes
    assert [o.reason for o in outcomes] == [Reason.MISSED, Reason.STILL_READ]
    assert outcomes[0].hint == Reason.MISSED.hint
    assert outcomes[0].blockers == ()
    assert outcomes[1].blockers
    assert outcomes[1].hint == Reason.STILL_READ.hint  # our pass could not move the reader, either


def test_the_hint_for_a_reader_that_could_move_names_the_pass_that_moves_it() -> None:
    def read_first(x, value):
        y = x * 2
        old = y.sum()
        return y.index_put((torch.tensor([0]),), value), old * 3

    gm = functional_of(read_first, torch.ones(8), torch.ones(1))
    (write,) = gm.graph.find_nodes(op="call_function", target=aten.index_put.default)
    (read,) = gm.graph.find_nodes(op="call_function", target=aten.sum.default)
    write.append(read)  # as Inductor does
    (outcome,) = judged(gm, nothing).report.outcomes
    assert outcome.reason is Reason.STILL_READ and [b.node for b in outcome.blockers] == [read.name]
    how = Reason.MISSED.hint.partition(": ")[2]
    assert outcome.hint == f"our pass reads it before the write: {how}"


def read_later(x, value):
    """What is read is smaller than what is made of it, so the copy waits and not the result."""
    old = x[:1]
    new = aten.index_put.default(x, [torch.tensor([0, 1])], value)
    total = aten.repeat.default(old, [3])
    x.copy_(new)
    return total


def overwritten_later(x, value):
    read = aten.index_put.default(x, [torch.tensor([0, 1])], value)[:1]
    x.copy_(aten.cat.default([value, value, value, value]))
    return aten.repeat.default(read, [3])


def read_by_the_same_call(x, value):
    y = x * 2
    return aten.index_put.default(y, [torch.tensor([0, 1])], y[1:3])


@pytest.mark.parametrize(
    ("program", "reason", "op", "nbytes", "instead"),
    [
        (read_later, Reason.STILL_READ, "aten::repeat", 4, 64),
        (overwritten_later, Reason.CLOBBERED, "aten::repeat", 4, 32),
        (read_by_the_same_call, Reason.SAME_NODE, "aten::index_put", 8, 32),
    ],
)
def test_a_clone_is_not_missed_where_a_smaller_copy_is_needed_instead(
    program: Callable[..., Any], reason: Reason, op: str, nbytes: int, instead: int
) -> None:
    gm = make_fx(program, tracing_mode="fake")(torch.ones(8), torch.ones(2))
    found = judged(gm, nothing).report.outcomes
    follows = [found[0].named] * (program is read_later)
    assert [outcome.reason for outcome in found] == [reason, *[Reason.FOLLOWS] * len(follows)]
    here = f"{instead} B here" + " and for what follows" * len(follows)
    assert found[0].hint.startswith(f"our pass copies {nbytes} B, for {op}, instead of {here}: ")
    assert found[0].hint.endswith("; that copy is still a clone")
    assert op in [blocker.op for blocker in found[0].blockers]
    assert sum(o.nbytes for o in found) == instead
    assert reinplace(gm).clone_bytes == nbytes
    assert [o.follows for o in found[1:]] == follows
    assert [o.label for o in found] == [
        "aten::index_put.self",
        *["aten::copy_.self"] * (program is read_later),
    ]


def test_a_write_that_our_analysis_forbids_is_suspicious() -> None:
    def keep(x):
        y = x * 2
        new = y.index_put((torch.tensor([0]),), torch.ones(1))
        return new * 1, y * 1

    def force(gm: torch.fx.GraphModule) -> None:
        for node in gm.graph.nodes:
            if node.target is torch.ops.aten.index_put.default:
                node.target = torch.ops.aten.index_put_.default

    found = judged(functional_of(keep, torch.ones(8)), force)
    assert found.report.clones == []
    assert found.suspicious == ("aten::index_put.self",)
    assert judged(functional_of(keep, torch.ones(8)), nothing).suspicious == ()


def returned_and_written_back(x):
    new = x.index_put((torch.tensor([0]),), torch.ones(1))
    x.copy_(new)
    return new[1:], new[:0], new * 2


def write_the_input(gm: torch.fx.GraphModule) -> None:
    """Rewrite as Inductor does where what is returned is no view of an input yet."""
    for node in gm.graph.find_nodes(op="call_function", target=aten.copy_.default):
        gm.graph.erase_node(node)
    for node in gm.graph.find_nodes(op="call_function", target=aten.index_put.default):
        node.target = aten.index_put_.default


@pytest.mark.parametrize(
    ("unseen", "found"),
    [
        (Unseen(), ("aten::index_put.self",)),
        (Unseen(regenerated=frozenset({0})), ()),
        (Unseen(saved=frozenset({0})), ()),
        (Unseen(saved=frozenset({1, 2})), ("aten::index_put.self",)),
        (None, ()),
    ],
)
def test_an_output_that_comes_to_share_an_input_is_suspicious(
    unseen: Unseen | None, found: tuple[str, ...]
) -> None:
    def graph() -> torch.fx.GraphModule:
        return make_fx(returned_and_written_back, tracing_mode="fake")(torch.ones(4))

    assert judged(graph(), write_the_input, unseen).suspicious == found
    assert judged(graph(), nothing, unseen).suspicious == ()
    assert judged(graph(), reinplace, unseen).suspicious == ()


def test_outputs_that_come_to_share_a_storage_are_suspicious() -> None:
    def twice(x):
        y = x * 2
        return y, y.index_put((torch.tensor([0]),), torch.ones(1)), y[1:]

    assert judged(functional_of(twice, torch.ones(4)), nothing, Unseen()).suspicious == ()
    gm = make_fx(twice, tracing_mode="fake")(torch.ones(4))
    assert judged(gm, write_the_input, Unseen()).suspicious == ("aten::index_put.self",)


def test_nothing_is_kept_for_outputs_that_are_made_anew() -> None:
    """Two of them share what is written, which is no reason to forbid the write."""

    def two_views(x):
        new = x.index_put((torch.tensor([0]),), torch.ones(1))
        x.copy_(new)
        return new[1:], new.view(2, 2)

    def graph() -> torch.fx.GraphModule:
        return make_fx(two_views, tracing_mode="fake")(torch.ones(4))

    assert judged(graph(), write_the_input, Unseen()).suspicious == ("aten::index_put.self",)
    assert judged(graph(), write_the_input, Unseen(frozenset({0, 1}))).suspicious == ()


def test_an_explicit_clone_is_in_place_when_it_is_gone() -> None:
    def copied(x):
        y = x * 2
        return y.clone() + 1

    def elide(gm: torch.fx.GraphModule) -> None:
        for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.clone.default):
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)

    def graph() -> torch.fx.GraphModule:  # not by torch.compile, which drops the clone by itself
        return make_fx(copied, tracing_mode="fake")(torch.ones(8))

    assert decided(judged(graph(), nothing)) == [("aten::clone.self", False)]
    assert decided(judged(graph(), elide)) == [("aten::clone.self", True)]


def test_a_copy_back_counts_while_it_moves_bytes() -> None:
    found = judged(functional_of(add_in_place), nothing)
    assert decided(found) == [("aten::index_put.self", False), ("aten::copy_.self", False)]
    assert [o.nbytes for o in found.report.outcomes] == [32, 32]

    def in_place(gm: torch.fx.GraphModule) -> None:
        for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.index_put.default):
            node.target = torch.ops.aten.index_put_.default

    # copy_(x, index_put_(x)) copies x onto itself, which torch and Inductor leave out.
    assert decided(judged(functional_of(add_in_place), in_place)) == [("aten::index_put.self", True)]


def drawn(x: torch.Tensor) -> torch.Tensor:
    new = aten.uniform.default(x)
    x.copy_(new)
    return new + 1


def computed(x: torch.Tensor) -> torch.Tensor:
    new = aten.add.Tensor(x, 1)
    x.copy_(new)
    return new + 1


@pytest.mark.parametrize(("program", "clones"), [(drawn, ["aten::copy_.self"]), (computed, [])])
def test_drawn_numbers_are_copied_back_and_computed_ones_stored(
    program: Callable[..., Any], clones: list[str]
) -> None:
    gm = make_fx(program)(torch.zeros(4))
    assert judged(gm, nothing).report.clones == clones
    assert judged(gm, reinplace).report.clones == []


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_a_copy_back_has_the_bytes_of_hinted_sizes(mode: Literal["fake", "symbolic"]) -> None:
    gm = make_fx(drawn, tracing_mode=mode)(torch.zeros(4))
    assert [o.nbytes for o in judged(gm, nothing).report.outcomes if not o.reinplaced] == [16]


def test_a_copy_that_starts_empty_is_a_copy() -> None:
    def empty_and_copy(gm: torch.fx.GraphModule) -> None:
        aten = torch.ops.aten
        for node in gm.graph.find_nodes(op="call_function", target=aten.index_put.default):
            with gm.graph.inserting_before(node):
                base = gm.graph.call_function(aten.empty_like.default, (node.args[0],))
                gm.graph.call_function(aten.copy_.default, (base, node.args[0]))
                new = gm.graph.call_function(aten.index_put_.default, (base, *node.args[1:]))
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)

    found = judged(functional_of(add_in_place), empty_and_copy)
    assert decided(found) == [("aten::index_put.self", False), ("aten::copy_.self", False)]


@pytest.mark.parametrize("name", ["inductor", "tests.plugin.passes:stock"])
def test_inductors_stage_is_read_the_same_by_its_notes_and_as_a_foreign_pass(name: str) -> None:
    for program in (both_v2, chain_of_scatters, view_back, add_in_place):
        with Capture(name, "graph") as capture:
            torch.compile(program)(*program.inputs)
        with Capture("inductor", "graph") as stock:
            torch.compile(program)(*program.inputs)
        assert capture.report.outcomes
        assert [(o.label, o.reinplaced) for o in capture.report.outcomes] == [
            (o.label, o.reinplaced) for o in stock.report.outcomes
        ]


@pytest.mark.usefixtures("unoptimized")
@pytest.mark.parametrize("name", ["inductor", "tests.plugin.passes:nothing"])
@pytest.mark.parametrize("backend", ["graph", "inductor"])
def test_a_scatter_computed_with_what_makes_or_uses_it_is_no_clone(name: str, backend: str) -> None:
    def outcomes(makes: Callable[..., Any], uses: Callable[..., Any]) -> list[tuple[bool, bool]]:
        def program(x: torch.Tensor, value: torch.Tensor) -> Any:
            y = makes(x, x)
            y[1] = value
            return uses(y, x)

        with Capture(name, backend) as capture:
            result = torch.compile(program)(torch.ones(4, 4), torch.zeros(4))
        torch.testing.assert_close(result, program(torch.ones(4, 4), torch.zeros(4)))
        assert len(capture.report.outcomes) == 1
        assert capture.report.outcomes[0].label == "aten::select_scatter.self"
        return [(o.fused, o.reinplaced) for o in capture.report.outcomes]

    computed, copied = [(True, True)], [(False, False)]
    assert outcomes(torch.add, torch.mm) == computed  # the operand is in no memory
    assert outcomes(torch.mm, torch.add) == computed  # the result is in none
    assert outcomes(torch.add, lambda y, x: y) == computed
    assert outcomes(torch.mm, torch.mm) == copied  # both are
    assert outcomes(torch.mm, lambda y, x: y) == copied


def test_on_random_graphs_the_judge_agrees_with_what_our_pass_says_of_itself() -> None:
    seeds, different = range(300), []
    for seed in seeds:
        gm = random_graph(seed).copy()
        rename_inside(gm)
        before = Before.of(gm)
        own = {(o.node, o.arg): o.reinplaced for o in reinplace(gm).outcomes if not o.added}
        found = judge(before, gm.graph).report.outcomes
        if any(own[o.node, o.arg] != o.reinplaced for o in found if o.op != "aten::copy_"):
            different.append(seed)
    # What a pass replaced is found by order and by what it writes; adversarial graphs can mislead that.
    assert len(different) <= len(seeds) / 100, different


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_copy_whose_overload_is_chosen_when_it_is_called_is_one(is_kept: bool) -> None:
    """Inductor's own pass writes a scatter by strides as such a copy, and a write into it."""

    def program(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        y = x if is_kept else x * 2
        return torch.as_strided_scatter(y, v, (2, 3), (3, 1), 6)

    def copying(gm: torch.fx.GraphModule) -> None:
        (node,) = gm.graph.find_nodes(op="call_function", target=aten.as_strided_scatter.default)
        with gm.graph.inserting_before(node):
            whole = gm.graph.call_function(aten.clone, node.args[:1]) if is_kept else node.args[0]
            part = gm.graph.call_function(aten.as_strided.default, (whole, *node.args[2:]))
            gm.graph.call_function(aten.copy_.default, (part, node.args[1]))
        node.replace_all_uses_with(whole)
        gm.graph.erase_node(node)

    gm = make_fx(program, tracing_mode="fake")(torch.ones(10, 3), torch.ones(2, 3))
    judgement = judged(gm, copying)
    assert decided(judgement) == [("aten::as_strided_scatter.self", not is_kept)]
    assert judgement.suspicious == ()
