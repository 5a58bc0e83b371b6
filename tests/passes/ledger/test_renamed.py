"""Where a rule gives all users of a node another one, its step has one line, and says what it always said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from pytest_reinplace.passes import ReinplaceError
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.ledger import Ledger, record, renamed
from pytest_reinplace.passes.ledger.recorder import Recorder
from pytest_reinplace.passes.strategies import random_graph

aten = torch.ops.aten
MORE = 3 * renamed.MANY
Lines = list[tuple[str, ...]]


def lines(gm: GraphModule) -> Lines:
    return [(n.op, str(n.target), str(n.args), str(n.kwargs)) for n in gm.graph.nodes]


def chain(count: int) -> GraphModule:
    build = GraphBuilder()
    x = build.call(aten.neg.default, build.placeholder(torch.arange(4)))
    other = build.placeholder(torch.arange(4) * 3)
    for _ in range(count):
        x = build.v1(adversary.operator("mix"), x=x, other=other)[-1]
    return build.finished([build.call(aten.sum.default, x)])


def fan(count: int, *, width: int = 4, clone: str = "last") -> GraphModule:
    """``y = -(-x)``, read ``count`` times together with ``x``, and cloned once if it is said where."""
    build = GraphBuilder()
    x = build.placeholder(torch.arange(width))
    size = build.call(aten.abs.default, x)  # between x and what the rules are applied to
    y = build.call(aten.neg.default, build.call(aten.neg.default, x))
    first = [build.call(aten.clone.default, y)] if clone == "first" else []
    read = [build.call(aten.add.Tensor, y, x) for _ in range(count)]
    last = [build.call(aten.clone.default, y)] if clone == "last" else []
    return build.finished([size, *first, *read, *last])


def told(ledger: Ledger) -> list[dict[str, Any]]:
    return [{**a.to_dict(), "seconds": 0} for a in ledger.applications]


def points(ledger: Ledger) -> Iterator[Lines | str]:
    """Yield the graph after each application, or why there is none between two of them."""
    for number in range(len(ledger.applications)):
        try:
            yield lines(ledger.graph_after(number))
        except ReinplaceError as error:
            yield str(error)


def negations(gm: GraphModule) -> tuple[Node, Node]:
    first, second = gm.graph.find_nodes(op="call_function", target=aten.neg.default)
    return first, second


def kept(
    gm: GraphModule, *rules: Callable[[Node, Node], None], matched: Sequence[Node] = ()
) -> tuple[Ledger, Lines]:
    """Return the ledger of rules inside a pass, and the graph as the last one left it."""
    recorder = Recorder(gm)
    first, second = negations(gm)
    with recorder.passed("a pass"):
        for rule in rules:
            with recorder.rule(rule.__name__, [first, second, *matched], second):
                rule(first, second)
        left = lines(gm)
    return recorder.ledger, left


def cancelled(first: Node, second: Node) -> None:
    second.replace_all_uses_with(first.all_input_nodes[0])
    second.graph.erase_node(second)
    second.graph.erase_node(first)


def test_a_chain_of_wrappers_is_kept_in_the_space_of_its_graph() -> None:
    gm = chain(MORE)
    start = lines(gm)
    ledger = record(gm, "post_grad")
    steps = ledger._points[-1].steps
    assert len(steps) == MORE and all(step.renamed for step in steps)
    assert max(len(step.come) for step in steps) <= 2
    assert lines(ledger.graph_before(0)) == start
    assert list(points(ledger))[-1] == lines(gm)


def test_all_points_of_a_chain_are_those_of_a_ledger_that_compares_each_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once = record(chain(MORE), "post_grad")
    monkeypatch.setattr(renamed, "MANY", 10 * MORE)
    one_by_one = record(chain(MORE), "post_grad")
    assert told(at_once) == told(one_by_one)
    assert list(points(at_once)) == list(points(one_by_one))


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_come_out_alike_whichever_way_users_are_kept(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = record(random_graph(seed).gm, "post_grad")
    gm = random_graph(seed).gm
    monkeypatch.setattr(renamed, "MANY", 0)
    at_once = record(gm, "post_grad")
    assert told(at_once) == told(one_by_one)
    assert list(points(at_once)) == list(points(one_by_one))
    assert not at_once.applications or list(points(at_once))[-1] == lines(gm)


def test_an_input_that_users_had_before_may_take_the_place() -> None:
    ledger, left = kept(fan(MORE), cancelled)
    (application,) = ledger.applications
    assert (application.rule, application.nodes) == ("cancelled", -2)
    assert list(points(ledger)) == [left]


@pytest.mark.parametrize("clone", ["first", "last"])
def test_a_user_that_copies_is_no_reason_to_keep_the_others_one_by_one(clone: str) -> None:
    ledger, left = kept(fan(MORE, clone=clone), cancelled)
    (step,) = ledger._points[-1].steps
    assert [entry.op for entry in step.come] == ["call_function"] and len(step.renamed) == 1
    assert list(points(ledger)) == [left]


@pytest.mark.parametrize("number", [3, MORE - 1], ids=["one-of-few", "matched"])
def test_a_user_that_a_rule_changes_in_another_way_too_is_a_part_of_the_rule(number: int) -> None:
    def also_turned(first: Node, second: Node) -> None:
        cancelled(first, second)
        user.args = (user.args[1], 2)

    gm = fan(MORE)
    user = list(negations(gm)[1].users)[number]
    ledger, left = kept(gm, also_turned, matched=[user] if number > renamed.MANY else [])
    assert [a.rule for a in ledger.applications] == ["also_turned"]
    assert list(points(ledger)) == [left]


def test_a_node_that_was_put_far_away_is_seen_by_its_users() -> None:
    def at_the_front(first: Node, second: Node) -> None:
        (x,) = first.all_input_nodes
        with second.graph.inserting_after(x):
            new = second.graph.call_function(aten.alias.default, (x,))
        second.replace_all_uses_with(new)

    ledger, left = kept(fan(MORE, clone=""), at_the_front)
    assert [a.nodes for a in ledger.applications] == [1]
    assert list(points(ledger)) == [left]


def test_a_node_may_be_used_again_after_it_had_lost_its_users() -> None:
    def unused(first: Node, second: Node) -> None:
        second.replace_all_uses_with(first)

    def used_again(first: Node, second: Node) -> None:
        with second.graph.inserting_after(second):
            new = second.graph.call_function(aten.sin.default, (second,))
        first.replace_all_uses_with(new, delete_user_cb=lambda user: user is not second)

    ledger, left = kept(fan(MORE), unused, used_again)
    assert [a.rule for a in ledger.applications] == ["unused", "used_again"]
    assert list(points(ledger))[-1] == left


def test_a_rule_that_gives_users_another_node_and_nothing_else_is_an_application() -> None:
    def unused(first: Node, second: Node) -> None:
        second.replace_all_uses_with(first.all_input_nodes[0])

    ledger, left = kept(fan(MORE, clone=""), unused)
    assert [(a.rule, a.nodes) for a in ledger.applications] == [("unused", 0)]
    assert list(points(ledger)) == [left]


def test_what_a_rule_does_to_other_users_is_an_application_of_the_pass() -> None:
    def also_subtracts(first: Node, second: Node) -> None:
        list(second.users)[renamed.MANY + 5].target = aten.sub.Tensor
        cancelled(first, second)

    gm = fan(MORE)
    ledger, left = kept(gm, also_subtracts)
    rule, rest = ledger.applications
    assert (rule.rule, rest.rule, rest.nodes) == ("also_subtracts", "", 0)
    assert list(points(ledger))[-1] == left == lines(gm)


def test_users_that_are_given_something_else_are_looked_at_one_by_one() -> None:
    def in_two_parts(first: Node, second: Node) -> None:
        for number, user in enumerate(list(second.users)):
            user.replace_input_with(second, (first, first.all_input_nodes[0])[number % 2])
        second.graph.erase_node(second)

    ledger, left = kept(fan(MORE), in_two_parts)
    assert [a.rule for a in ledger.applications] == ["in_two_parts"]
    assert not ledger._points[-1].steps[0].renamed
    assert list(points(ledger)) == [left]


def one_row(first: Node, second: Node) -> None:
    (x,) = first.all_input_nodes
    with second.graph.inserting_before(first):
        row = second.graph.call_function(aten.slice.Tensor, (x, 0, 0, 1))
    row.meta["val"] = x.meta["val"][:1]
    second.replace_all_uses_with(row)
    second.graph.erase_node(second)
    second.graph.erase_node(first)


def test_a_user_that_copies_tells_how_much_it_copies_then() -> None:
    ledger, left = kept(fan(MORE, width=8), one_row)
    (application,) = ledger.applications
    assert application.copy_bytes == -7 * 8
    assert list(points(ledger)) == [left]


def test_so_does_one_that_was_not_near_what_the_rule_matched() -> None:
    gm = fan(MORE, width=8)
    first, second = negations(gm)
    recorder = Recorder(gm)
    with recorder.passed("a pass"):
        with recorder.rule("a rule", [first], first):
            one_row(first, second)
        left = lines(gm)
    (application,) = recorder.ledger.applications
    assert (application.rule, application.copy_bytes) == ("a rule", -7 * 8)
    assert list(points(recorder.ledger)) == [left]


def test_one_name_may_be_given_up_more_than_once() -> None:
    """Users that come back to a node, and leave it again, follow the names of their own time."""
    a, b, c = list(fan(1).graph.nodes)[:3]
    renames = renamed.Renames([{a: b}, {}, {a: c, b: a}])
    assert [renames.of((a, b), since) for since in (-1, 0, 1, 2)] == [(a, a), (c, a), (c, a), (a, b)]
    assert not renamed.Renames([{}, {}])


@pytest.mark.parametrize(
    ("one", "other"),
    [((1, [2]), (1, [2])), ({"a": slice(1, None)}, {"a": slice(1, None)}), ((), ())],
)
def test_arguments_are_the_same_where_they_hold_the_same(one: Any, other: Any) -> None:
    assert renamed.same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [((1, 2), (1,)), ((1,), [1]), ((1,), (True,)), ({"a": 1}, {"b": 1}), (slice(1, 2), slice(1, 3)), (1, 2)],
)
def test_arguments_differ_where_one_object_does(one: Any, other: Any) -> None:
    assert not renamed.same(one, other)


def test_a_graph_of_its_own_is_still_followed() -> None:
    def copies(graph: Graph) -> None:
        first, second = (node for node in graph.nodes if node.target is aten.neg.default)
        cancelled(first, second)

    gm = fan(MORE)
    ledger = record(gm, copies)
    assert [a.nodes for a in ledger.applications] == [-2]
    assert list(points(ledger)) == [lines(gm)]
