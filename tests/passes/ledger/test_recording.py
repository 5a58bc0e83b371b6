"""A pipeline followed pass by pass and rule by rule: what is noted adds up to what became of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule

from pytest_reinplace.passes import ReinplaceError, inductor_options
from pytest_reinplace.passes.ledger import (
    Ledger,
    blamed,
    checked,
    checking,
    joint_inputs,
    record,
    recorded,
    watching,
)
from pytest_reinplace.passes.strategies import random_graph
from pytest_reinplace.passes.verify import copied

from ..trace import arange, functional, ops

aten = torch.ops.aten
STAGES = ["joint", "post_grad"]


def lines(gm: GraphModule) -> list[tuple[str, ...]]:
    return [(n.op, str(n.target), str(n.args), str(n.kwargs)) for n in gm.graph.nodes]


def cat_of_split(x: torch.Tensor) -> torch.Tensor:
    return torch.cat(torch.split(x, [2, 3], 1), 1)


def sum_of_constant(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(torch.full([3], 2.7, dtype=torch.int64), 0) + x.sum().to(torch.int64)


def plus_zeros(x: torch.Tensor) -> torch.Tensor:
    return x + torch.zeros(2, 5)


# Rules of Inductor that compute something else, and what each is called.
WRONG: dict[Callable[[torch.Tensor], Any], tuple[str, str, str]] = {
    cat_of_split: ("post_grad", "pass_pattern_2", "splitwithsizes_cat_replace"),
    sum_of_constant: ("post_grad", "pass_pattern_1", "pointless_cumsum_replacement"),
    plus_zeros: ("joint", "constant_fold_uniform_value", ""),
}
WRONG_ON_213 = torch.__version__.startswith("2.13.")


@pytest.mark.skipif(not WRONG_ON_213, reason="which rules are wrong is written down for torch 2.13")
@pytest.mark.parametrize("check", ["rules", "passes"])
@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.__name__)
def test_a_wrong_rule_of_inductor_is_named(program: Callable[..., Any], check: Any) -> None:
    gm, inputs = functional(program, arange(2, 5))
    ledger = record(gm, STAGES, inputs=inputs, check=check)
    blame = blamed(ledger)
    assert blame is not None and blame.application is not None
    wrong = blame.application
    assert (wrong.stage, wrong.pass_name, wrong.rule) == WRONG[program]
    assert wrong.source is not None and wrong.source.startswith("tests/passes/ledger/test_recording.py:")
    assert [a.number for a in ledger.applications if a.is_wrong] == [wrong.number]
    with pytest.raises(AssertionError, match=f"1 application breaks the contract:\n{wrong.number} "):
        ledger.assert_right()


def test_what_is_right_is_blamed_on_nobody() -> None:
    def program(cache: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        ops.update(cache, x * 1.0)
        return (cache + 0.0).relu()

    gm, inputs = functional(program, arange(4, 5), arange(5))
    ledger = record(gm, STAGES, inputs=inputs, check="rules")
    assert blamed(ledger) is None
    ledger.assert_right()
    assert {a.finding.status for a in ledger.applications if a.finding} == {"same"}
    assert len(ledger.by_pass()["decompose_auto_functionalized"]) == 1


def running_sums(x: torch.Tensor) -> torch.Tensor:
    def step(carried: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = carried + row
        return total, total.sin()

    return torch._higher_order_ops.scan(step, torch.zeros(5), x)[1]


def test_a_loop_that_a_pass_makes_is_checked_with_its_body() -> None:
    gm, inputs = functional(running_sums, arange(4, 5))
    ledger = record(gm, STAGES, inputs=inputs, check="rules")
    made = [a for a in ledger.applications if a.pass_name == "decompose_scan_to_while_loop"]
    assert [(a.finding.status, a.finding.text) for a in made if a.finding] == [("same", "")]


@pytest.mark.skipif(torch.__version__ < "2.13", reason="torch 2.11 keeps random calls in no order")
def test_random_calls_that_are_kept_in_order_draw_what_they_drew() -> None:
    gm, inputs = functional(lambda x: torch.rand_like(x) + x * torch.rand_like(x), arange(5))
    with torch._inductor.config.patch(fallback_random=True):
        ledger = record(gm, STAGES, inputs=inputs, check="rules")
    assert ledger.matches == {"chain_random_ops_ordering": 1}
    ledger.assert_right()
    assert [a.finding.status for a in ledger.applications if a.finding] == ["same"]


@pytest.mark.parametrize("seed", range(12))
def test_the_applications_of_random_graphs_add_up(seed: int) -> None:
    gm = random_graph(seed).gm
    start = copied(gm)
    ledger = record(gm, "post_grad")
    count = len(ledger.applications)
    assert lines(ledger.graph_before(0)) == lines(start)
    assert lines(ledger.graph_after(count - 1) if count else start) == lines(gm)
    added = sum(len(a.copies_added) - len(a.copies_removed) for a in ledger.applications)
    before, after = ledger.copies
    assert after - before == added
    assert sum(a.nodes for a in ledger.applications) == len(gm.graph.nodes) - len(start.graph.nodes)


# -- pipelines of others ---------------------------------------------------------------------------


class Manager:
    """Runs passes as the managers of serving engines do."""

    def __init__(self, *passes: Callable[[Graph], None]) -> None:
        self.passes = list(passes)

    def __call__(self, graph: Graph) -> None:
        for one in self.passes:
            one(graph)


def drop_dead(graph: Graph) -> None:
    graph.eliminate_dead_code()


def double_negation(graph: Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.neg.default):
        (operand,) = node.all_input_nodes
        if operand.target is aten.neg.default:
            node.replace_all_uses_with(operand.args[0])
            graph.erase_node(node)


def sine_is_cosine(graph: Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.sin.default):
        node.target = aten.cos.default


def copy_results(graph: Graph) -> None:
    output = graph.output_node()
    with graph.inserting_before(output):
        new = [graph.call_function(aten.clone.default, (node,)) for node in output.args[0]]
    for node, old in zip(new, output.args[0], strict=True):
        node.meta.update(old.meta)
    output.args = (tuple(new),)


def nothing(graph: Graph) -> None:
    pass


def fails(graph: Graph) -> None:
    raise ValueError("no such pattern")


def negated_twice(x: torch.Tensor) -> torch.Tensor:
    return x.neg().neg().sin() + 1


@pytest.fixture
def graph() -> tuple[GraphModule, list[Any]]:
    return functional(negated_twice, arange(2, 5))


@pytest.mark.parametrize("of", ["contract", "copies"])
@pytest.mark.parametrize("is_manager", [True, False], ids=["manager", "list"])
def test_the_planted_fault_in_the_third_of_five_passes_is_found(
    graph: tuple[GraphModule, list[Any]], of: str, is_manager: bool
) -> None:
    gm, inputs = graph
    fault = sine_is_cosine if of == "contract" else copy_results
    passes = [drop_dead, double_negation, fault, nothing, drop_dead]
    pipeline: Any = Manager(*passes) if is_manager else passes
    ledger = record(gm, pipeline, inputs=inputs, check="rules")
    blame = blamed(ledger, of)
    assert blame is not None and blame.application is not None
    assert blame.application.pass_name.rpartition(":")[2] == fault.__name__
    assert blame.application.node == ("sin" if of == "contract" else "clone_default")
    assert ledger.copies_added == (() if of == "contract" else ("aten::clone.self",))
    assert blamed(ledger, "contract" if of == "copies" else "copies") is None
    if is_manager:
        assert pipeline.passes == passes  # as they were


def test_bytes_nodes_and_matches_are_those_of_each_application(
    graph: tuple[GraphModule, list[Any]],
) -> None:
    gm, _ = graph
    ledger = record(gm, [double_negation, copy_results])
    first, last = ledger.applications
    assert (first.nodes, first.copy_bytes) == (-1, 0)
    assert (last.nodes, last.copy_bytes) == (1, 40)
    assert [name.rpartition(":")[2] for name in ledger.matches] == ["double_negation", "copy_results"]
    most = blamed(ledger, "nodes")
    assert most is not None and most.application == last
    by_name = blamed(ledger, f"matches:{first.pass_name}")
    assert by_name is not None and by_name.application == first
    assert blamed(ledger, "matches:rms_norm_quant") is None


def test_a_crash_keeps_what_came_before(graph: tuple[GraphModule, list[Any]]) -> None:
    gm, _ = graph
    ledger, error = recorded(gm, [double_negation, fails, copy_results])
    assert isinstance(error, ValueError)
    blame = blamed(ledger, "crash")
    assert blame is not None
    assert str(blame).endswith(":fails: ValueError: no such pattern")
    assert len(ledger.applications) == 1
    with pytest.raises(ValueError, match="no such pattern") as raised:
        record(gm, [double_negation, fails])
    note = raised.value.__notes__[-1]
    assert note.startswith(str(raised.value.ledger.crash)) and note.endswith("; they are in error.ledger")  # type: ignore[attr-defined]


def test_a_change_of_order_alone_is_an_application(graph: tuple[GraphModule, list[Any]]) -> None:
    def reorder(graph: Graph) -> None:
        one = graph.find_nodes(op="call_function", target=aten.neg.default)[0]
        constant.append(one)

    gm, _ = functional(lambda x: (x.neg(), x.exp()), arange(4))
    constant = gm.graph.find_nodes(op="call_function", target=aten.exp.default)[0]
    ledger = record(gm, reorder)
    (application,) = ledger.applications
    assert (application.node, application.nodes) == ("", 0)
    assert "another order" in str(application)
    assert lines(ledger.graph_after(0)) == lines(gm) != lines(ledger.graph_before(0))


@pytest.mark.parametrize(
    ("pipeline", "given", "message"),
    [
        ("post-grad", {}, "expected a pipeline, 'joint' or 'post_grad', got 'post-grad'"),
        (3, {}, "expected a callable, a stage or a list of them as a pipeline, got 3"),
        (nothing, {"check": "rules"}, "expected inputs for check='rules'"),
        (nothing, {"check": "all"}, 'expected check="off", "passes" or "rules", got \'all\''),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    graph: tuple[GraphModule, list[Any]], pipeline: Any, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ReinplaceError, match="^" + message.replace("(", "\\(")):
        record(graph[0], pipeline, **given)


def test_a_ledger_that_was_not_checked_says_nothing_of_the_contract(
    graph: tuple[GraphModule, list[Any]],
) -> None:
    ledger = record(graph[0], copy_results)
    for ask in (ledger.assert_right, lambda: blamed(ledger)):
        with pytest.raises(ReinplaceError, match="expected a ledger that was checked"):
            ask()
    with pytest.raises(ReinplaceError, match="expected contract, copies, nodes"):
        blamed(ledger, "speed")
    with pytest.raises(ReinplaceError, match="expected the number of one of 1 applications"):
        ledger.graph_after(1)


def test_it_is_plain_data_for_json(graph: tuple[GraphModule, list[Any]]) -> None:
    ledger: Ledger = record(graph[0], copy_results, inputs=graph[1], check="passes")
    (plain,) = ledger.to_dict()["applications"]
    assert plain["copies_added"] == ("aten::clone.self",)
    assert plain["finding"]["status"] == "same"
    assert plain["pass"].endswith(":copy_results")


# -- checking what is large, and what nobody calls -----------------------------------------------------------


def stretch(count: int, wrong: int) -> tuple[Ledger, list[torch.Tensor]]:
    """Return the ledger of so many passes, of which one is wrong and the others change nothing."""
    gm, inputs = functional(lambda x: (x.sin() * 2, x.to(torch.int64) + 1), torch.rand(4))

    def right(graph: Graph) -> None:
        (node,) = graph.find_nodes(op="call_function", target=aten.mul.Tensor)
        with graph.inserting_before(node):
            new = graph.call_function(aten.mul.Tensor, node.args)
        new.meta.update(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)

    def adds(graph: Graph) -> None:
        (node,) = graph.find_nodes(op="call_function", target=aten.add.Tensor)
        node.args = (node.args[0], 2)

    return record(gm, [adds if i == wrong else right for i in range(count)]), inputs


def test_a_large_ledger_is_halved_and_the_wrong_application_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, inputs = stretch(count=200, wrong=137)
    compared = []
    original = checking.check

    def counted(*args: Any, **kwargs: Any) -> Any:
        compared.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(checking, "check", counted)
    found = checked(ledger, inputs, each=True, most=1)
    assert [a.number for a in found.applications if a.is_wrong] == [137]
    assert {a.finding.status for a in found.applications if a.finding and not a.is_wrong} == {"same"}
    assert len(compared) < 20
    compared.clear()
    each = checked(ledger, inputs, each=True)
    assert [a.finding for a in each.applications] == [a.finding for a in found.applications]
    assert len(compared) == 200


def test_what_is_compared_only_together_with_others_is_not_checked() -> None:
    """Each application rounds: there is no stretch whose ends do the same bit by bit."""
    gm, inputs = functional(lambda x: x.sin() * 2, torch.rand(4) + 1)

    def rounds(graph: Graph) -> None:
        output = graph.output_node()
        ((result,),) = output.args
        with graph.inserting_before(output):
            new = graph.call_function(aten.mul.Tensor, (result, 1 + 2**-23))
        new.meta.update(result.meta)
        output.args = ((new,),)

    ledger = checked(record(gm, [rounds] * 100), inputs, each=True, most=1)
    found = [a.finding for a in ledger.applications if a.finding]
    unchecked = [finding for finding in found if finding.status == "not-checked"]
    assert len(found) == 100 and {finding.status for finding in found} == {"same", "not-checked"}
    assert "it was compared only together with 2 others, which round in another way" in unchecked[0].text


def test_a_fault_is_told_although_no_comparison_is_left_to_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, inputs = stretch(count=8, wrong=5)
    monkeypatch.setattr(checking, "_FEWEST", 2)
    found = checked(ledger, inputs, each=True, most=1)
    assert [a.number for a in found.applications if a.is_wrong] == [0]
    wrong = found.applications[0].finding
    assert wrong is not None and wrong.text.endswith(" (one of the applications 0 to 7)")
    others = {a.finding.status for a in found.applications[1:] if a.finding}
    assert others == {"not-checked"}


def test_stages_before_one_are_taken_alone() -> None:
    gm, inputs = functional(cat_of_split, arange(2, 5))
    ledger = record(gm, STAGES)
    joint = ledger.before("post_grad")
    assert len(joint.applications) < len(ledger.applications)
    assert {a.stage for a in joint.applications} <= {"joint"}
    assert lines(joint.graph_before(0)) == lines(ledger.graph_before(0))
    assert checked(joint, inputs, each=True).crash is None


def test_gradients_are_drawn_once_and_for_all() -> None:
    graph = Graph()
    first, other = graph.placeholder("primals_1"), graph.placeholder("tangents_1")
    graph.output((first, other))
    mode = torch._subclasses.FakeTensorMode()
    first.meta["val"], other.meta["val"] = (
        mode.from_tensor(torch.ones(3)),
        mode.from_tensor(torch.ones(2, 4, dtype=torch.bfloat16).t()),
    )
    gm, given = GraphModule(torch.nn.Module(), graph), {"primals_1": torch.zeros(3)}
    one, two = joint_inputs(gm, given), joint_inputs(gm, given)
    assert one[0] is given["primals_1"]
    assert (one[1].shape, one[1].stride(), one[1].dtype) == ((4, 2), (1, 4), torch.bfloat16)
    assert torch.equal(one[1], two[1]) and one[1].unique().numel() > 4


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("primals_1", torch.ones(3), "input primals_1 of the joint graph is none of the forward graph"),
        ("tangents_1", torch.ones(3, dtype=torch.int64), "the gradient tangents_1 is of layout"),
        ("tangents_1", None, "the gradient tangents_1 is no plain tensor"),
    ],
)
def test_a_gradient_that_cannot_be_drawn_is_refused(name: str, value: Any, message: str) -> None:
    graph = Graph()
    node = graph.placeholder(name)
    graph.output((node,))
    mode = torch._subclasses.FakeTensorMode()
    node.meta["val"] = value if value is None else mode.from_tensor(value)
    with pytest.raises(ReinplaceError, match=message):
        joint_inputs(GraphModule(torch.nn.Module(), graph), {})


def test_nothing_is_followed_while_a_watch_pauses() -> None:
    gm, _ = functional(cat_of_split, arange(2, 5))
    with watching() as watch:
        with watch.pausing():
            record(copied(gm), "post_grad")
        assert watch.ledgers == ()


def test_what_was_not_checked_is_not_right() -> None:
    gm, inputs = functional(lambda x: x * 2 + torch.rand(5), arange(5))

    def draws_again(graph: Graph) -> None:
        (node,) = graph.find_nodes(op="call_function", target=aten.rand.default)
        with graph.inserting_before(node):
            new = graph.call_function(node.target, node.args, node.kwargs)
        new.meta.update(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)

    ledger = record(gm, draws_again, inputs=inputs, check="rules")
    with pytest.raises(AssertionError, match="1 application was not checked:\n0 pipeline / .*other random"):
        ledger.assert_right()
    with pytest.raises(ReinplaceError, match="expected 1 inputs, one for each placeholder, got 0"):
        record(gm, draws_again, inputs=[], check="rules")


def test_our_rules_are_named_inside_their_hook() -> None:
    gm, inputs = functional(cat_of_split, arange(2, 5))
    with torch._inductor.config.patch(inductor_options(stage="post_grad")):
        ledger = record(gm, STAGES, inputs=inputs, check="rules")
    assert "post_grad_custom_pre_pass/cat_of_split" in ledger.by_pass()
    ledger.assert_right()
