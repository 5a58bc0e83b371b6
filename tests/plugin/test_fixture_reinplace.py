"""The fixture reinplace."""

from __future__ import annotations

import pytest

HEAD = """
import pytest, torch
from programs import *
from torch.fx.experimental.proxy_tensor import make_fx
from pytest_reinplace.passes import GraphError

def functional(x, value):
    y = x * 2
    z = torch.ops.aten.slice_scatter.default(y, value, 0, 0, 4)
    return z * 1, y[4:].sum()

def graph():
    return make_fx(functional, tracing_mode="fake")(torch.zeros(8), torch.ones(4))

def nothing(gm):
    pass

def clone_and_write(gm):
    for node in list(gm.graph.nodes):
        if node.target is torch.ops.aten.slice_scatter.default:
            _write(gm.graph, node, copied=True)

def write_in_place(graph: torch.fx.Graph) -> None:
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.slice_scatter.default:
            _write(graph, node, copied=False)

def _write(graph, node, copied):
    aten = torch.ops.aten
    with graph.inserting_before(node):
        base = graph.call_function(aten.clone.default, (node.args[0],)) if copied else node.args[0]
        view = graph.call_function(aten.slice.Tensor, (base, *node.args[2:]))
        graph.call_function(aten.copy_.default, (view, node.args[1]))
    node.replace_all_uses_with(base)
    graph.erase_node(node)

def breaks(gm):
    gm.graph.erase_node(next(iter(gm.graph.find_nodes(op="output"))))
    raise KeyError("in the middle")

def ill_formed(gm):
    first, second = [n for n in gm.graph.nodes if n.op == "call_function"][:2]
    second.append(first)

def test_it({asked}):
"""


def run(project: pytest.Pytester, body: str) -> pytest.RunResult:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    asked = ", ".join(name for name in ("reinplace", "assert_clones") if name in body)
    project.makepyfile(test_it=HEAD.replace("{asked}", asked) + f"{lines}\n")
    return project.runpytest_inprocess()


@pytest.mark.parametrize(
    ("my_pass", "clones"),
    [
        ("nothing", ["aten::slice_scatter.self"]),
        ("clone_and_write", ["aten::slice_scatter.self"]),
        ("write_in_place", []),
        ("'exact'", []),
        ("'inductor'", ["aten::slice_scatter.self"]),
    ],
)
def test_apply_judges_any_pass(compiling: pytest.Pytester, my_pass: str, clones: list[str]) -> None:
    body = f"""
gm = graph()
report = reinplace.apply(gm, {my_pass})
assert report.clones == {clones}
assert [o.reason.value for o in report.outcomes if not o.reinplaced] == {["missed"] * len(clones)}
x = torch.arange(8.0)
assert [r.tolist() for r in gm(x, torch.ones(4))] == [r.tolist() for r in functional(x, torch.ones(4))]
assert assert_clones == {clones}
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_apply_uses_the_pass_under_test(compiling: pytest.Pytester) -> None:
    body = """
assert reinplace.apply(graph()).clones == ["aten::slice_scatter.self"]
(found,) = reinplace.graphs
assert (found.id, found.pass_name) == ("[apply 0]", "inductor")
assert "slice_scatter" in found.before
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_apply_takes_what_trace_returns(compiling: pytest.Pytester) -> None:
    body = """
traced = reinplace.trace(update, *inputs(update))
assert reinplace.apply(traced, "exact").reinplaced == ["aten::index_put.self"]
assert "index_put_" in traced.gm.code
"""
    run(compiling, body).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            "apply(update)",
            "expected an fx.GraphModule, or what reinplace.trace(fn, ...) returns, got function",
        ),
        ("compile(3)", "expected a callable and its arguments, got 3"),
        ("run(3)", "expected a callable and its arguments, got 3"),
        ("trace(3)", "expected a callable and its arguments, got 3"),
    ],
)
def test_what_is_no_graph_or_no_callable_is_told(compiling: pytest.Pytester, call: str, told: str) -> None:
    result = run(compiling, f"reinplace.{call}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *TypeError: {told}"])


@pytest.mark.parametrize(("my_pass", "error"), [("breaks", "KeyError"), ("ill_formed", "GraphError")])
def test_a_pass_that_raises_leaves_the_graph_as_it_was(
    compiling: pytest.Pytester, my_pass: str, error: str
) -> None:
    body = f"""
gm = graph()
text = str(gm.graph)
with pytest.raises({error}):
    reinplace.apply(gm, {my_pass})
assert str(gm.graph) == text
assert gm(torch.zeros(8), torch.ones(4))[0].sum() == 4
assert reinplace.graphs == ()
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_apply_refuses_a_graph_that_writes_already(compiling: pytest.Pytester) -> None:
    body = """
gm = graph()
assert reinplace.apply(gm, "exact").clones == []
with pytest.raises(GraphError, match="reinplaced already"):
    reinplace.apply(gm, nothing)
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_apply_refuses_what_is_no_pass(compiling: pytest.Pytester) -> None:
    result = run(compiling, "reinplace.apply(graph(), 3)")
    result.stdout.fnmatch_lines(["E *PassError: pass 'int': expected a callable over a graph, got 3"])


def test_run_compiles_calls_and_measures(compiling: pytest.Pytester) -> None:
    body = """
x = torch.zeros(1000)
run = reinplace.run(call_op, x, torch.ones(1000))
assert run.result.sum() == 2000
assert x.sum() == 1000
assert run.report.reinplaced == ["plugintest::write.out"]
assert len(run.graphs) == 1
assert 4000 <= run.peak_bytes < 4100
again = reinplace.run(call_op, x, torch.ones(1000))
assert again.peak_bytes == run.peak_bytes
assert 8000 <= reinplace.run(keep, x).peak_bytes < 8200
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_run_leaves_state_as_one_call_would(compiling: pytest.Pytester) -> None:
    body = """
class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(4))
    def forward(self, x):
        self.count.add_(1)
        call_op(self.count[2:], torch.zeros(1))
        return x + torch.rand(4)
module, plain = Counter(), torch.zeros(1)
torch.manual_seed(3)
first = reinplace.run(module, torch.zeros(4)).result
assert module.count.tolist() == [1, 1, 0, 1]
torch.manual_seed(3)
assert torch.equal(reinplace.compile(module)(torch.zeros(4)), first)
def add(y):
    plain.add_(1)
    return y * plain
reinplace.run(add, torch.ones(1))
assert plain.item() == 1
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_compile_passes_options_on(compiling: pytest.Pytester) -> None:
    body = """
fast = reinplace.compile(call_op, dynamic=True)
fast(torch.zeros(8), torch.ones(4))
fast(torch.zeros(16), torch.ones(7))
assert [g.id for g in reinplace.graphs] == ["[fw 0/0]"]
static = reinplace.compile(call_op, dynamic=False)
static(torch.zeros(8), torch.ones(4))
static(torch.zeros(16), torch.ones(7))
assert [g.id for g in reinplace.graphs] == ["[fw 0/0]", "[fw 1/0]", "[fw 1/1]"]
assert reinplace.report.reinplaced == ["plugintest::write.out"] * 3
"""
    run(compiling, body).assert_outcomes(passed=1)
