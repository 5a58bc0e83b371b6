"""The oracle: our pass on random graphs, the passes that it must catch, and the graphs themselves."""

from __future__ import annotations

import collections
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import Options, ReinplaceError, declare, reinplace, strategies
from pytest_reinplace.passes.fuzz import adversary, dtype_view
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph.find_layouts import known
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.ops import higher_order, in_place_form, schema
from pytest_reinplace.passes.oracle import command
from pytest_reinplace.passes.oracle.command import minimal
from pytest_reinplace.passes.oracle.tally import Tally, tallied
from pytest_reinplace.passes.oracle.verdict import Pass, Verdict, judged
from pytest_reinplace.passes.reinplacing.decide import conditions
from pytest_reinplace.passes.reinplacing.facts.model import Model
from pytest_reinplace.passes.reinplacing.kinds import functional
from pytest_reinplace.passes.reinplacing.model import build
from pytest_reinplace.passes.reinplacing.run import reinplace_graph
from pytest_reinplace.passes.strategies import RandomGraph, functional_graphs, replayed
from pytest_reinplace.passes.verify import assert_equivalent
from pytest_reinplace.passes.verify.execution import cloned, leaves, run
from pytest_reinplace.passes.verify.laid_out import overlaps_itself
from pytest_reinplace.passes.verify.optimum import forms

SEEDS = range(400)


@functools.cache
def made(seed: int, wild: bool) -> RandomGraph:
    return strategies.random_graph(seed, wild=wild)


def random_graph(seed: int, *, wild: bool = False) -> RandomGraph:
    """Return the graph of a seed, made once: most tests look at the same ones, and rewrite copies."""
    return made(seed, wild)


@pytest.fixture(autouse=True)
def made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_reinplace.passes.oracle.tally.random_graph", random_graph)


@pytest.fixture(autouse=True, scope="module")
def unchanged() -> Iterator[None]:
    """See to it that no test has changed a graph that others get."""
    yield
    for seed in range(0, 400, 20):
        kept, anew = random_graph(seed), strategies.random_graph(seed)
        assert str(kept.gm.graph) == str(anew.gm.graph) and laid_out(kept) == laid_out(anew)
        assert all(map(torch.equal, kept.inputs, anew.inputs))
    made.cache_clear()


def blind(gm: GraphModule) -> None:
    """Write every wrapper in place, whatever it overwrites; what vLLM's defunctionalization does."""
    for node in gm.graph.nodes:
        if "auto_functionalized" in str(node.target):
            node.meta["only_clone_these_tensors"] = []


def without_clones(gm: GraphModule) -> None:
    """Drop every clone, as a clean-up of no-ops would."""
    for node in gm.graph.nodes:
        if node.target is torch.ops.aten.clone.default and not node.kwargs:
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)


def without_write_backs(gm: GraphModule) -> None:
    """Forget the last ``copy_`` into an input."""
    for node in reversed(list(gm.graph.nodes)):
        if node.target is torch.ops.aten.copy_.default:
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
            return


def lowered(gm: GraphModule) -> None:
    """Rewrite as for Inductor, which leaves some candidates out and writes others differently."""
    reinplace_graph(gm.graph, Options(target=INDUCTOR))


def idle(gm: GraphModule) -> None:
    """Change nothing."""


def test_our_pass_is_right_and_near_the_optimum() -> None:
    tally = tallied(SEEDS)
    assert not tally.wrong, "\n".join(f"seed {s}: {v.message}\n{random_graph(s)}" for s, v in tally.wrong[:2])
    assert tally.percentage >= 98.5, f"{tally}; seeds {[s for s, _ in tally.above]}"


def test_what_inductor_will_lower_is_right_too() -> None:
    tally = tallied(range(1000, 1200), lowered, optimum=False)
    assert not tally.wrong, "\n".join(f"seed {s}: {v.message}" for s, v in tally.wrong)


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None)
@hypothesis.given(functional_graphs())
def test_our_pass_on_graphs_of_hypothesis(graph: RandomGraph) -> None:
    rewritten = graph.copy()
    reinplace(rewritten)
    assert_equivalent(graph.gm, rewritten, graph.inputs)


@pytest.mark.parametrize(
    ("one_pass", "problems"),
    [
        (blind, {"output", "input"}),
        (without_clones, {"output", "alias"}),
        (without_write_backs, {"input"}),
    ],
)
def test_wrong_passes_are_caught(one_pass: Pass, problems: set[str]) -> None:
    tally = tallied(range(150), one_pass, optimum=False)
    assert {verdict.problem for _, verdict in tally.wrong} >= problems
    assert len(tally.wrong) < 150  # where nothing stands against it, even a blind pass is right


def test_a_pass_that_does_nothing_is_right_and_useless() -> None:
    tally = tallied(range(60), idle)
    assert not tally.wrong and tally.removed == 0 < tally.removable and tally.percentage == 0.0
    assert tally.above


def test_a_pass_that_raises_is_a_finding() -> None:
    def raises(gm: GraphModule) -> None:
        raise RuntimeError("half way")

    verdict = judged(random_graph(0), raises)
    assert verdict.problem == "error" and "RuntimeError: half way" in verdict.message


def test_what_torch_refuses_on_the_way_is_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracebacks by the hundred would hide the few lines that the command prints."""
    logged: list[Any] = []
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    monkeypatch.setattr(logger, "handlers", [_Kept(logged)])
    build = GraphBuilder()
    pairs = build.placeholder(torch.zeros(2, 8, dtype=torch.int32))
    apart = build.call(torch.ops.aten.slice.Tensor, pairs, 1, 0, 8, 2)

    def refused(_: object = None) -> None:
        build.call(torch.ops.aten.view.dtype, apart, torch.int64)

    with pytest.raises(RuntimeError, match="must be 1 to view"):
        refused()
    assert len(logged) == 1
    whole = build.placeholder(torch.zeros(2, 2, dtype=torch.int64))
    assert dtype_view.back(build, whole, apart).meta["val"].dtype is torch.int64
    assert "must be 1 to view" in judged(random_graph(0), refused).message
    assert len(logged) == 1
    with pytest.raises(RuntimeError, match="must be 1 to view"):
        refused()
    assert len(logged) == 2


class _Kept(logging.Handler):
    def __init__(self, records: list[Any]) -> None:
        super().__init__()
        self.records = records

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def test_failing_graphs_become_small_and_print_as_programs() -> None:
    seed, verdict = tallied(range(40), blind, optimum=False).wrong[0]
    small = minimal(seed, lambda v: v.problem == verdict.problem, blind)
    assert judged(small, blind).problem == verdict.problem
    assert len(small.gm.graph.nodes) <= min(8, len(random_graph(seed).gm.graph.nodes))
    names: dict[str, Any] = {}
    exec(str(small), names)  # our pass is right on it, so the printed program runs to its end
    assert str(names["graph"].gm.graph) == str(small.gm.graph)


def test_what_a_graph_is_does_not_depend_on_those_before() -> None:
    first, again = ([laid_out(strategies.random_graph(n)) for n in range(340, 370)] for _ in range(2))
    assert first == again


def laid_out(graph: RandomGraph) -> list[Any]:
    """Return what is told of each tensor of a graph."""
    told = [schema.tensors(n.meta.get("val")) for n in graph.gm.graph.nodes]
    return [(t.shape, t.stride(), t.storage_offset()) for each in told for t in each]


def test_a_seed_and_its_choices_make_the_same_graph() -> None:
    for seed in range(20):
        graph, again = (strategies.random_graph(seed) for _ in range(2))
        twin = replayed(graph.choices)
        assert str(graph.gm.graph) == str(again.gm.graph) == str(twin.gm.graph)
        assert all(torch.equal(a, b) for a, b in zip(graph.inputs, twin.inputs, strict=True))
    with pytest.raises(ReinplaceError, match="no graph with a candidate"):
        replayed([])


def test_a_copy_of_a_graph_is_rewritten_alone() -> None:
    graph = next(g for g in map(random_graph, SEEDS) if analyzed_in_place(g))
    before = str(graph.gm.graph)
    reinplace(graph.copy())
    assert str(graph.gm.graph) == before


def analyzed_in_place(graph: RandomGraph) -> bool:
    return bool(reinplace(graph.copy()).reinplaced)


def test_every_kind_of_node_occurs() -> None:
    seen: collections.Counter[str] = collections.Counter()
    for seed in range(900):
        graph = random_graph(seed)
        for node in graph.gm.graph.nodes:
            seen[str(node.target) if node.op == "call_function" else node.op] += 1
            if "auto_functionalized" in str(node.target):
                seen[str(node.args[0])] += 1
                seen.update({key.rsplit("_", 2)[-1] for key in node.kwargs})
    kinds = ("index_put", "_unsafe_index_put", "slice_scatter", "select_scatter", "diagonal_scatter")
    views = ("slice.Tensor", "select.int", "view.default", "view.dtype", "permute.default", "split.Tensor")
    more = ("as_strided.default", "diagonal.default", "expand.default", "alias.default", "copy_.default")
    for name in (
        *(f"{k}.default" for k in kinds),
        "as_strided_scatter.default",
        "clone.default",
        *views,
        *more,
    ):
        assert seen[f"aten.{name}"], name
    wrappers = ("auto_functionalized", "auto_functionalized_v2")
    encodings = ("alias", "offset", "start", "length", "index")  # a view as alias, as_strided or slice
    for name in (*wrappers, *encodings, "get_attr"):
        assert seen[name], name
    assert all(seen[f"reinplace_adversary.{name}.default"] for name in adversary.names())
    assert all(seen[str(op)] for op in forms.FORMS)


def test_the_oracle_and_the_pass_know_the_same_in_place_forms() -> None:
    for op, form in forms.FORMS.items():
        # A list and one tensor for all of it is a list and that tensor for each in place.
        assert in_place_form.in_place_form(op).overloadpacket is form.op.overloadpacket, op
        assert in_place_form.copies_operand(op) is form.copies, op


def test_graphs_with_subgraphs_are_held_against_the_contract_only() -> None:
    graph = next(g for g in map(random_graph, SEEDS) if calls_in(g))
    verdict = judged(graph)
    assert verdict.problem is None and not verdict.searched
    tally = Tally()
    tally.add(0, verdict)
    assert (tally.graphs, tally.nested, tally.removable) == (1, 1, 0)
    assert str(tally).endswith("with subgraphs 1") and "subgraph0" in str(graph)


def test_a_copy_of_a_graph_has_subgraphs_of_its_own() -> None:
    graphs = [g for g in map(random_graph, SEEDS) if calls_in(g)]
    before = [str(child.graph) for g in graphs for child in subgraphs(g.gm)]
    changed = [reinplace(g.copy()).reinplaced for g in graphs]
    assert any(changed) and before == [str(child.graph) for g in graphs for child in subgraphs(g.gm)]


def test_recorded_values_are_those_of_a_run() -> None:
    lying: set[torch.fx.Node] = set()

    def same(node: torch.fx.Node, value: Any) -> None:
        if isinstance(value, GraphModule):
            return
        for (_, real), (_, fake) in zip(leaves(value), leaves(node.meta["val"]), strict=True):
            if isinstance(real, torch.Tensor):
                assert (real.dtype, real.shape) == (fake.dtype, fake.shape), node.format_node()
                assert node in lying or real.storage_offset() == fake.storage_offset(), node.format_node()
                pairs = zip(real.stride(), fake.stride(), real.shape, strict=True)
                assert node in lying or all(a == b or n <= 1 for a, b, n in pairs), node.format_node()

    for seed in range(300):
        graph = random_graph(seed)
        layouts = known(graph.gm.graph).of(graph.gm.graph)
        lying = {n for n in graph.gm.graph.nodes if layouts.of(n).untold}
        run(graph.gm, cloned(graph.inputs), observer=same)


def test_the_command_prints_one_line_and_failing_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--graphs", "20", "--seed", "7"]) == 0
    line = capsys.readouterr().out
    assert line.startswith("graphs 20  wrong 0  alias-wrong 0  bytes removable ") and " %)" in line
    name = f"{__name__}:blind"
    assert command.main(["--graphs", "20", "--pass", name, "--show", "1", "--no-optimum"]) == 1
    shown = capsys.readouterr().out
    assert "# seed " in shown and "strategies.replayed([" in shown
    assert f'print(foreign.found("{name}")(rewritten)' in shown


def over_graphs(graph: torch.fx.Graph) -> None:
    reinplace(graph)


def test_the_command_takes_a_pass_over_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--graphs", "5", "--pass", f"{__name__}:over_graphs", "--no-optimum"]) == 0
    assert "(100.00 %)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mypass", "expected inductor, inductor-stack or a pass as MODULE:NAME, got 'mypass'"),
        ("no_such_module:x", "expected a module for the pass 'no_such_module:x'"),
        (f"{__name__}:no_such_name", "found no 'no_such_name' in"),
        (f"{__name__}:CLASSES", "expected a callable as the pass"),
    ],
)
def test_the_command_says_which_part_of_a_name_is_wrong(
    name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(["--graphs", "1", "--pass", name])
    assert text in capsys.readouterr().err


def test_nothing_to_remove_is_no_share() -> None:
    assert "(-)" in str(Tally())


CLASSES = {
    "expanded input": lambda g: any(0 in t.stride() and t.numel() > 1 for t in g.inputs if t.dim() > 1),
    "overlapping input": lambda g: any(
        overlaps_itself(t) and 0 not in t.stride() for t in g.inputs if t.dim()
    ),
    "strided input": lambda g: any(not t.is_contiguous() for t in g.inputs),
    "four dimensions": lambda g: any(t.dim() > 3 for t in g.inputs),
    "dtype view": lambda g: "aten.view.dtype" in names_in(g),
    "complex view": lambda g: "aten.view_as_real.default" in names_in(g),
    "complex view back": lambda g: "aten.view_as_complex.default" in names_in(g),
    "split": lambda g: "aten.split.Tensor" in names_in(g),
    "split with sizes": lambda g: "aten.split_with_sizes.default" in names_in(g),
    "chunk": lambda g: "aten.chunk.default" in names_in(g),
    "unbind": lambda g: "aten.unbind.int" in names_in(g),
    "transpose": lambda g: "aten.transpose.int" in names_in(g),
    "unfold": lambda g: "aten.unfold.default" in names_in(g),
    "list in v1": lambda g: bool({f"1 {n}" for n in LISTS} & names_in(g)),
    "list in v2": lambda g: bool({f"2 {n}" for n in LISTS} & names_in(g)),
    "optional list in v1": lambda g: "1 maybe_many" in names_in(g),
    "optional list in v2": lambda g: "2 maybe_many" in names_in(g),
    "write-only": lambda g: bool({"1 overwrite", "2 overwrite", "1 produce", "2 produce"} & names_in(g)),
    "elementwise": lambda g: bool({"1 rows", "2 rows"} & names_in(g)),
    "collective": lambda g: "_c10d_functional.wait_tensor.default" in names_in(g),
    **{name: lambda g, n=name: n in names_in(g) for name in ("cond", "while_loop", "invoke_subgraph")},
    **{name: lambda g, n=name: n in names_in(g) for name in ("scan", "map_impl")},
    "nested calls": lambda g: any(list(higher_order.calls(m.graph)) for m in subgraphs(g.gm)),
    "loop that captures": lambda g: any(
        str(c.node.target) == "while_loop" and c.node.args[3] for c in calls_in(g)
    ),
    "one subgraph twice": lambda g: len({n.target for n in modules_in(g)}) < len(calls_of_regions(g)),
    "indexed": lambda g: any(n.startswith(("aten.index_add", "aten.index_copy")) for n in names_in(g)),
    "scattered": lambda g: any(n.startswith(("aten.scatter.", "aten.scatter_")) for n in names_in(g)),
    "foreach": lambda g: any("_foreach" in n for n in names_in(g)),
    "wait later": lambda g: any(is_wait(n) and n.args[0] is not n.prev for n in g.gm.graph.nodes),
}
LISTS = ("many", "two_lists")


def subgraphs(gm: GraphModule) -> list[GraphModule]:
    return [child for child in gm.children() if isinstance(child, GraphModule)]


def calls_in(graph: RandomGraph) -> list[higher_order.Call]:
    return list(higher_order.calls(graph.gm.graph))


def calls_of_regions(graph: RandomGraph) -> list[higher_order.Call]:
    return [call for call in calls_in(graph) if str(call.node.target) == "invoke_subgraph"]


def modules_in(graph: RandomGraph) -> list[Any]:
    return [call.node.args[0] for call in calls_of_regions(graph)]


def names_in(graph: RandomGraph) -> set[str]:
    """Return the operators of a graph; wrapped ones with the version of their wrapper."""
    found = set()
    for node in graph.gm.graph.nodes:
        if node.op == "call_function":
            found.add(str(node.target))
            if "auto_functionalized" in str(node.target):
                version = 2 if "v2" in str(node.target) else 1
                found.add(f"{version} {str(node.args[0]).split('.')[1]}")
    return found


def is_wait(node: torch.fx.Node) -> bool:
    return str(node.target) == "_c10d_functional.wait_tensor.default"


def test_every_class_of_graph_is_reached() -> None:
    graphs = [random_graph(seed) for seed in range(600)]
    counts = {name: sum(map(bool, map(is_one, graphs))) for name, is_one in CLASSES.items()}
    assert all(count >= 3 for count in counts.values()), counts
    assert sum(len(g.gm.graph.nodes) for g in graphs) < 25 * len(graphs)  # small: the optimum is computed


def test_a_write_of_what_a_subgraph_still_reads_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any reads all is written that could be, before a call that is given it, too."""
    monkeypatch.setattr(Model, "add_read", lambda self, *args, **more: None)
    wrong = [seed for seed, _ in all_seeds_fail(300)]
    assert any(calls_in(random_graph(seed)) for seed in wrong)


def all_seeds_fail(count: int = 400) -> list[tuple[int, Verdict]]:
    return tallied(range(count), optimum=False).wrong


def test_a_write_while_a_collective_is_under_way_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (build, functional):
        monkeypatch.setattr(module, "wait_time", lambda node, order: order[node])
    wrong = [seed for seed, _ in all_seeds_fail()]
    assert wrong and all("c10d" in " ".join(names_in(random_graph(seed))) for seed in wrong)


def test_an_elementwise_operator_that_reads_its_neighbours_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "is_own_element", lambda model, candidate, place: True)
    assert all_seeds_fail(200)


def test_a_write_only_argument_that_is_read_is_caught() -> None:
    with declare(adversary.operator("bump"), write_only=("x",)):
        assert all_seeds_fail(200)


def test_an_operand_that_is_read_although_it_is_declared_not_to_be_is_caught() -> None:
    with declare(adversary.operator("mix"), reads=()):
        assert all_seeds_fail(300)


def test_what_a_subgraph_is_given_is_laid_out_as_it_is_told() -> None:
    """Of what is expanded, too: else a copy that somebody needs seems to be one that nobody does."""
    pairs = [
        (repeated(call.value(slot)), repeated(own))
        for seed in range(300)
        for call in calls_in(random_graph(seed))
        if str(call.node.target) in ("cond", "invoke_subgraph")
        for body in call.bodies
        for slot, own in zip(body.operands, body.module.graph.find_nodes(op="placeholder"), strict=True)
    ]
    assert all(given == own for given, own in pairs)
    assert any(given for given, _ in pairs)


def repeated(node: Any) -> list[int]:
    """Return the dimensions of a value whose elements are the same."""
    value = node.meta["val"]
    return [d for d in range(value.dim()) if value.shape[d] > 1 and value.stride(d) == 0]


# -- rare things -----------------------------------------------------------------------------------

RARE: dict[str, Callable[[RandomGraph], bool]] = {
    "einsum": lambda g: "aten.einsum.default" in names_in(g),
    "part by a copy's name": lambda g: any(n.startswith("aten.unsafe_split") for n in names_in(g)),
    "view or copy": lambda g: {"aten.contiguous.default", "aten.reshape.default"} <= names_in(g),
    "copy by a view's name": lambda g: "aten.slice_copy.Tensor" in names_in(g),
    "expanded to itself": lambda g: "aten.expand_as.default" in names_in(g),
    "viewed as itself": lambda g: "aten.view_as.default" in names_in(g),
    "turned": lambda g: "aten.movedim.int" in names_in(g),
    "detached": lambda g: "aten.detach.default" in names_in(g),
    "no elements": lambda g: any(not t.numel() for t in g.inputs),
    "three calls deep": lambda g: any(subgraphs(two) for one in subgraphs(g.gm) for two in subgraphs(one)),
}


def test_what_is_rare_is_reached_where_it_is_wanted() -> None:
    wild, usual = ([random_graph(seed, wild=is_wild) for seed in range(400)] for is_wild in (True, False))
    assert {name: sum(map(is_one, wild)) >= 2 for name, is_one in RARE.items()} == dict.fromkeys(RARE, True)
    assert not any(is_one(graph) for graph in usual for name, is_one in RARE.items())


def test_our_pass_is_right_on_what_is_rare_and_others_are_caught() -> None:
    tally = tallied(range(200), wild=True, optimum=False)
    assert not tally.wrong, "\n".join(f"seed {s}: {v.message}" for s, v in tally.wrong[:2])
    assert tallied(range(60), blind, wild=True, optimum=False).wrong


def test_a_rare_graph_is_made_small_and_printed_as_what_it_is() -> None:
    seed, verdict = tallied(range(60), blind, wild=True, optimum=False).wrong[0]
    small = minimal(seed, lambda v: v.problem == verdict.problem, blind, wild=True)
    assert ", wild=True)" in str(small) and ", wild=True)" not in str(random_graph(seed))
    names: dict[str, Any] = {}
    exec(str(small), names)
    assert str(names["graph"].gm.graph) == str(small.gm.graph)
    assert command.main(["--graphs", "10", "--wild", "--no-optimum"]) == 0
