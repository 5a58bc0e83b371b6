"""--reinplace-verify-rules: each application is held against the graph just before it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.capture.followed import Following
from pytest_reinplace.passes import ledger

ON_213 = torch.__version__.startswith("2.13.")
only_213 = pytest.mark.skipif(not ON_213, reason="which rules are wrong is written down for torch 2.13")

# A manager of passes of one's own, one of which has a wrong rule: it takes sin for cos.
FOREIGN = """
import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.pattern_matcher import PatternMatcherPass, fwd_only, register_replacement

wrong, right = PatternMatcherPass(pass_name="mine_wrong"), PatternMatcherPass(pass_name="mine_right")

def sin(x):
    return torch.ops.aten.sin.default(x)

def cos(x):
    return torch.ops.aten.cos.default(x)

def doubled(x):
    return torch.ops.aten.add.Tensor(x, x)

def twice(x):
    return torch.ops.aten.mul.Tensor(x, 2)

def register(pattern, replacement, into):
    register_replacement(pattern, replacement, [torch.empty(4, 4)], fwd_only, into)

register(sin, cos, wrong)
register(doubled, twice, right)

class Manager(CustomGraphPass):
    passes = (right, wrong)

    def __call__(self, graph):
        for one in self.passes:
            one.apply(graph)

    def uuid(self):
        return None

class Right(Manager):
    passes = (right,)
"""

OWN = """
import mine, torch

def program(x):
    y = x + x
    return torch.sin(y) * 3

def test_program():
    with torch._inductor.config.patch(post_grad_custom_pre_pass=mine.Manager()):
        torch.compile(program)(torch.randn(4, 4))
"""

STOCK = """
import torch

def call(fn, *inputs):
    torch.compile(fn)(*inputs)

def test_cat():
    call(lambda x: torch.cat(torch.split(x, [2, 3], 1), 1), torch.randn(2, 5))

def test_cumsum():
    call(lambda x: (torch.full((4,), 5, dtype=torch.bool).cumsum(0), (x @ x).sin() + 1), torch.ones(3, 3))

def test_cumsum_dtype():
    call(lambda x: (torch.full((4,), 2).cumsum(0, dtype=torch.float32), (x @ x).sin() + 1), torch.ones(3, 3))

def test_zeros():
    call(lambda x: (x + torch.zeros(3, 3), (x @ x).sin() + 1), -torch.zeros(3, 3))

def test_signs():
    call(lambda x: torch.signbit(x + torch.zeros(3, 3)), -torch.zeros(3, 3))

def test_right():
    call(lambda x: (torch.addmm(x, x, x).relu() * 1).clone() + 1, torch.randn(3, 3))
"""


def verify(project: pytest.Pytester, *options: str, **files: str) -> pytest.RunResult:
    if files:
        project.makepyfile(**files)
    torch._dynamo.reset()
    return project.runpytest_inprocess("--reinplace-verify-rules", "--reinplace-json=out.json", *options)


def graphs(project: pytest.Pytester) -> dict[str, list[dict[str, Any]]]:
    report = json.loads((project.path / "out.json").read_text())
    return {nodeid.partition("::")[2]: test["graphs"] for nodeid, test in report["tests"].items()}


def applications(project: pytest.Pytester, test: str) -> list[dict[str, Any]]:
    return [one for graph in graphs(project)[test] for one in graph.get("applications") or ()]


@pytest.mark.parametrize("backend", ["graph", "inductor"])
def test_a_wrong_rule_of_a_foreign_pass_is_named(compiling: pytest.Pytester, backend: str) -> None:
    result = verify(compiling, f"--reinplace-backend={backend}", mine=FOREIGN, test_own=OWN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            f"graph [[]fw 0/0]: a rule breaks the contract (pass inductor, backend {backend})",
            "  * post_grad / post_grad_custom_pre_pass: sin, node sin at test_own.py:5: +0 nodes; "
            "output 0 (mul): 16 of 16 elements differ, *",
            "  first node that differs: * at test_own.py:*",
            "*= reinplace verify =*",
            "2 applications of passes and rules checked, 1 wrong, 0 not checked",
            "  test_own.py::test_program [[]fw 0/0] * post_grad / post_grad_custom_pre_pass: sin, *",
        ]
    )
    found = {one["rule"]: one["finding"]["status"] for one in applications(compiling, "test_program")}
    assert found == {"doubled": "same", "sin": "different"}


def test_its_right_rule_is_not_blamed(compiling: pytest.Pytester) -> None:
    result = verify(compiling, mine=FOREIGN, test_own=OWN.replace("Manager()", "Right()"))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 application of passes and rules checked, 0 wrong, 0 not checked"])


def test_a_wrong_pass_under_test_is_named(compiling: pytest.Pytester) -> None:
    foreign = """
    import torch

    def negate(graph: torch.fx.Graph) -> None:
        for node in graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default):
            node.target = torch.ops.aten.neg.default
    """
    own = """
    import torch

    def test_program():
        torch.compile(lambda x: x.sin() + 1)(torch.randn(4))
    """
    result = verify(compiling, "--reinplace-pass=mine:negate", mine=foreign, test_own=own)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "graph [[]fw 0/0]: a pass breaks the contract (pass mine:negate, backend graph)",
            "  0 post_grad / reinplace_inplaceable_ops/mine:negate, node sin at test_own.py:4: +0 nodes; *",
        ]
    )


@only_213
def test_integers_and_signs_of_zero_are_not_hidden_by_rounding_elsewhere(compiling: pytest.Pytester) -> None:
    result = verify(compiling, test_own=STOCK)
    result.assert_outcomes(failed=5, passed=1)
    wrong = {
        test: [(a["stage"], a["rule"] or a["pass"]) for a in applications(compiling, test) if is_wrong(a)]
        for test in graphs(compiling)
    }
    folding = [("joint", "constant_fold_uniform_value")]
    assert wrong == {
        "test_cat": [("post_grad", "splitwithsizes_cat_replace")],
        "test_cumsum": [("post_grad", "pointless_cumsum_replacement")],
        "test_cumsum_dtype": [("post_grad", "pointless_cumsum_replacement")],
        "test_zeros": folding,
        "test_signs": folding,
        "test_right": [],
    }


def is_wrong(application: dict[str, Any]) -> bool:
    return application["finding"]["status"] == "different"


TRAINING = """
import torch

weight = torch.randn(3, 3, requires_grad=True)

def program(x):
    return ((x @ weight + torch.ones(3)).relu() * torch.ones(3)).sin()

def test_training():
    torch.compile(program, dynamic=DYNAMIC)(torch.randn(4, 3)).sum().backward()
"""
JOINT = """
import torch

def halve(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.cos.default):
        node.target = torch.ops.aten.sin.default  # cos is in the backward only
"""


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_joint_graph_of_training_is_checked(compiling: pytest.Pytester, dynamic: bool) -> None:
    result = verify(compiling, test_own=TRAINING.replace("DYNAMIC", str(dynamic)))
    result.assert_outcomes(passed=1)
    found = applications(compiling, "test_training")
    joint = [one for one in found if one["graph"] == "[joint 0/0]"]
    assert joint and {one["stage"] for one in joint} == {"joint"}
    assert {one["finding"]["status"] for one in found} == {"same"}


def test_what_is_wrong_in_a_gradient_alone_is_found_in_the_joint_graph(compiling: pytest.Pytester) -> None:
    put = "    import joint\n    torch._inductor.config.joint_custom_pre_pass = joint.halve\n"
    source = TRAINING.replace("DYNAMIC", "False").replace("    torch.compile(", f"{put}    torch.compile(")
    with torch._inductor.config.patch(joint_custom_pre_pass=None):
        result = verify(compiling, joint=JOINT, test_own=source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "graph [[]joint 0/0]: a pass breaks the contract (pass inductor, backend graph)",
            "  0 joint / joint_custom_pre_pass, node cos at test_own.py:*: +0 nodes; output * differ, *",
        ]
    )


BRANCHES = """
import mine, torch

def program(choice, x):
    return torch.cond(choice, lambda x: x.sin() * 3, lambda x: x.sin() + x, (x,))

def test_branches():
    with torch._inductor.config.patch(post_grad_custom_pre_pass=mine.Manager()):
        torch.compile(program)(torch.tensor(True), torch.randn(4, 4))
"""


def test_a_subgraph_is_checked_with_what_it_is_called_with(compiling: pytest.Pytester) -> None:
    result = verify(compiling, mine=FOREIGN, test_own=BRANCHES)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["graph [[]fw 0/0 true_graph_0]: a rule breaks the contract *", "  * sin, node sin *"]
    )
    found = {one["graph"]: one["finding"] for one in applications(compiling, "test_branches")}
    assert found["[fw 0/0 true_graph_0]"]["status"] == "different"
    other = found["[fw 0/0 false_graph_0]"]
    assert (other["status"], other["text"]) == ("not-checked", "its subgraph was not called")


def test_what_was_not_called_says_so(compiling: pytest.Pytester) -> None:
    source = TRAINING.replace("DYNAMIC", "False").replace(".sum().backward()", "") + (
        "\ndef test_random():\n    torch.compile(lambda x: torch.dropout(x * 1, 0.5, True))(torch.ones(64))\n"
    )
    verify(compiling, test_own=source).assert_outcomes(passed=2)
    unchecked = [one for one in applications(compiling, "test_random") if one["finding"]["status"] != "same"]
    assert {one["finding"]["status"] for one in unchecked} <= {"not-checked"}
    assert any("random" in one["finding"]["text"] for one in unchecked)


def test_both_checks_tell_of_one_miscompile(compiling: pytest.Pytester) -> None:
    result = verify(compiling, "--reinplace-verify", mine=FOREIGN, test_own=OWN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "graph [[]fw 0/0] breaks the contract: output 0 (mul): *",
            "  wrong since pass mine:Manager",
            "graph [[]fw 0/0]: a rule breaks the contract *",
            "1 graph checked, 1 wrong, 0 not checked",
            "2 applications of passes and rules checked, 1 wrong, 0 not checked",
        ]
    )


def test_a_test_that_fails_or_is_expected_to_tells_it_too(compiling: pytest.Pytester) -> None:
    source = OWN + (
        "    assert False\n\n"
        "import pytest\n\n@pytest.mark.xfail\ndef test_expected():\n"
        "    with torch._inductor.config.patch(post_grad_custom_pre_pass=mine.Manager()):\n"
        "        torch.compile(program)(torch.randn(4, 4))\n"
    )
    result = verify(compiling, mine=FOREIGN, test_own=source)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*Captured reinplace verify call*", "graph [[]fw 0/0]: a rule breaks the contract *"]
    )


def test_a_rule_that_raises_is_named(compiling: pytest.Pytester) -> None:
    foreign = FOREIGN + (
        "\ndef fails(match, x):\n    raise IndexError('no dimension')\n\n"
        "from torch._inductor.pattern_matcher import CallFunction, KeywordArg, register_graph_pattern\n"
        "failing = PatternMatcherPass(pass_name='mine_failing')\n"
        "register_graph_pattern(CallFunction(torch.ops.aten.sin.default, KeywordArg('x')), pass_dict=failing)"
        "(fails)\n\nclass Failing(Manager):\n    passes = (failing,)\n"
    )
    result = verify(compiling, mine=foreign, test_own=OWN.replace("Manager()", "Failing()"))
    result.assert_outcomes(failed=1)
    told = "raised by post_grad / post_grad_custom_pre_pass, rule fails at sin: IndexError: no dimension"
    result.stdout.fnmatch_lines(["*Captured reinplace verify call*", told])


def test_passes_that_did_not_run_in_this_process_are_said(compiling: pytest.Pytester) -> None:
    """As where a cache has the graph: it was compiled, but no pass was seen."""
    own = """
    import torch
    from torch._inductor import compile_fx

    def cached(gm, inputs, **kwargs):
        def run(args):
            return gm(*args)
        run._boxed_call = True
        return run

    def test_hit():
        backend = lambda gm, inputs: compile_fx.compile_fx(gm, inputs, inner_compile=cached)
        with torch.no_grad():
            torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(3))
    """
    result = verify(compiling, test_own=own)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["  test_own.py::test_hit [[]fw 0/0] not checked: its post-grad passes did not run in this process"]
    )
    (graph,) = graphs(compiling)["test_hit"]
    assert (graph["applications"], graph["unfollowed"]) == (
        [],
        "its post-grad passes did not run in this process",
    )


def test_an_entry_of_a_corpus_is_checked(compiling: pytest.Pytester) -> None:
    builder = """
    import torch
    from pytest_reinplace import Program

    def build(device):
        return Program(lambda x: (x * 2).index_put((torch.tensor([0]),), torch.ones(1)), (torch.ones(8),))
    """
    compiling.makefile(
        ".reinplace.yaml",
        one="description: one\nbuilder: building:build\npresets: {cpu: {backend: graph}}\n"
        "clones: {exact: []}\n",
    )
    verify(compiling, building=builder).assert_outcomes(passed=1)
    assert all(graph["applications"] is not None for graph in graphs(compiling)["one"])


def test_without_the_option_nothing_is_followed(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(mine=FOREIGN, test_own=OWN)
    torch._dynamo.reset()
    result = compiling.runpytest_inprocess("--reinplace-json=out.json")
    result.assert_outcomes(passed=1)
    (graph,) = graphs(compiling)["test_program"]
    assert "applications" not in graph and "unfollowed" not in graph


def test_a_defect_of_ours_breaks_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("x")

    monkeypatch.setattr(ledger, "checked", broken)
    with Capture("inductor", "graph", following=Following(checks=True)) as capture:
        assert torch.compile(lambda x: (x * 1).clone() + 1)(torch.ones(2)).tolist() == [2, 2]
    (graph,) = capture.checked_graphs
    why = "checking failed, which is a defect of pytest-reinplace: KeyError: 'x'"
    assert graph.unfollowed == why
    assert graph.applications
    assert {one["finding"]["text"] for one in graph.applications} == {why}


def test_what_is_never_called_is_not_checked() -> None:
    with Capture("inductor", "graph", following=Following(checks=True)) as capture:
        weight = torch.ones(2, requires_grad=True)
        torch.compile(lambda x: ((x * weight).sin() * 1).cos())(torch.ones(2))
        following = capture.following
        assert following is not None
        graph = torch.fx.symbolic_trace(lambda x: x * 2)
        compiled = following.compiling("[fw 1/0]", graph, {})
        assert compiled.wrapped("a path") == "a path"
    assert compiled.problem == "its post-grad passes did not run in this process"
    assert [one.graph_id for one in following.compiled] == ["[fw 0/0]", "[fw 1/0]"]


def test_states_are_let_go_of_once_they_are_checked() -> None:
    following = Following(checks=True)
    with Capture("inductor", "graph", following=following):
        torch.compile(lambda x: (x * 1).clone() + 1)(torch.ones(2))
        assert following.watch.graphs == ()
        assert [one.parts for one in following.compiled] == [[]]


def followed(
    program: Any, *inputs: Any, under_test: str = "inductor", **options: Any
) -> list[dict[str, Any]]:
    """Return the applications of a program that is compiled and called on the graph backend."""
    with Capture(under_test, "graph", following=Following(checks=True)) as capture, torch.no_grad():
        torch.compile(program, fullgraph=True, options=options)(*inputs)
    assert not any(graph.unfollowed for graph in capture.checked_graphs)
    return [one for graph in capture.checked_graphs for one in graph.applications or ()]


def test_a_subgraph_that_a_rule_makes_is_there_when_it_is_checked() -> None:
    """As the loop that a scan becomes."""
    from torch._higher_order_ops.scan import scan

    def program(start: torch.Tensor, steps: torch.Tensor) -> Any:
        return scan(lambda total, step: (total + step, total * step), start, steps)

    found = followed(program, torch.zeros(3), torch.rand(4, 3))
    loops = [one for one in found if one["pass"] == "decompose_scan_to_while_loop"]
    assert loops and {one["finding"]["status"] for one in loops} == {"same"}


@pytest.mark.skipif(torch.__version__ < "2.13", reason="2.11 orders no random operators")
def test_random_operators_that_a_pass_puts_into_subgraphs_are_no_alarm() -> None:
    def program(mask: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        mask.bernoulli_(0.5)
        return x * mask + torch.rand_like(x)

    inputs = torch.ones(8, 8), torch.rand(8, 8)
    found = followed(program, *inputs, under_test="exact", fallback_random=True)
    assert "chain_random_ops_ordering" in {one["pass"] for one in found}
    assert {one["finding"]["status"] for one in found} <= {"same", "not-checked"}
