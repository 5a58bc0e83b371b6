"""Graphs that are run node by node: fake values are corrected where a rule tells what a kernel makes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._pytree import tree_leaves

from pytest_reinplace.passes import GraphError, Report, RewriteError, analyze, reinplace
from pytest_reinplace.passes._torch import collective, hop, unbacked_bindings
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph import emit
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.ops.schema import schema_of
from pytest_reinplace.passes.ops.traits import ROWS
from pytest_reinplace.passes.ops.true_strides import has_rule, made
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.facts.target import NODE_BY_NODE
from pytest_reinplace.passes.reinplacing.run import reinplace_graph
from pytest_reinplace.passes.verify import assert_equivalent

from ..ops.test_true_strides import calls, overloads
from ..trace import arange

aten, prims = torch.ops.aten, torch.ops.prims
Tensor = torch.Tensor


def transposed(b: GraphBuilder) -> Node:
    return b.call(aten.permute.default, b.placeholder(arange(4, 6)), [1, 0])


def broadcast(b: GraphBuilder, x: Node) -> Node:
    started = b.call(collective("broadcast"), x, 0, "reinplace")
    return b.call(collective("wait_tensor"), started)


def reduced(b: GraphBuilder, x: Node) -> Node:
    started = b.call(collective("all_reduce"), x, "sum", "reinplace")
    return b.call(collective("wait_tensor"), started)


def built(use: Callable[[GraphBuilder, Node], Node]) -> GraphModule:
    b = GraphBuilder()
    return b.finished([use(b, broadcast(b, transposed(b)))])


def rewritten(b: GraphBuilder, *outputs: Node, lowered: bool = False) -> Report:
    """Rewrite a graph as one that is run node by node, or as Inductor's, and hold it against itself."""
    gm = b.finished([*outputs])
    after = GraphModule(gm, Graph())
    after.graph.output(after.graph.graph_copy(gm.graph, {}))
    report = reinplace_graph(after.graph, Options(target=INDUCTOR if lowered else NODE_BY_NODE))
    after.recompile()
    assert_equivalent(gm, after, b.inputs)
    return report


def strides(gm: GraphModule) -> dict[str, Any]:
    values = {n.name: n.meta.get("val") for n in gm.graph.nodes}
    return {name: [t.stride() for t in tree_leaves(v) if isinstance(t, Tensor)] for name, v in values.items()}


# -- the rules ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_kernels_follow_the_rules() -> None:
    """Real results of all operators that are said to be laid out element by element."""
    seen = set()
    for op in overloads():
        if not schema_of(op).iterated:
            continue
        for args, kwargs in calls(op):
            try:
                real = op(*args, **kwargs)
            except RuntimeError:  # not for such operands
                continue
            assert [real.stride()] == made(op, [*args, *kwargs.values()]), op
            seen.add(op.name().split(".")[0])
    assert seen == {name.partition(".")[0] for name, row in ROWS.items() if row.iterated}


def test_a_rule_tells_nothing_of_symbolic_sizes_or_rolled_images() -> None:
    image = torch.empty(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    assert made(aten.roll.default, [image, [1], [0]]) is None
    assert made(aten.roll.default, [image.contiguous(), [1], [0]]) == [(48, 16, 4, 1)]
    assert made(aten.heaviside.default, []) is None


# -- what is gained ----------------------------------------------------------------------------

USES: dict[str, tuple[Callable[[GraphBuilder, Node], Node], str]] = {
    "reduced": (reduced, "_c10d_functional::all_reduce.input"),
    "a clone in its format": (
        lambda b, x: b.call(aten.clone.default, x, memory_format=torch.contiguous_format),
        "aten::clone.self",
    ),
    "bytes named": (
        lambda b, x: b.v2(
            adversary.operator("bump"), {"x": (x, b.call(aten.as_strided.default, x, [4], [1], 4))}
        )[-1],
        "reinplace_adversary::bump.x",
    ),
    "by a v1 wrapper": (
        lambda b, x: b.v1(adversary.operator("bump"), x=x)[-1],
        "reinplace_adversary::bump.x",
    ),
}


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("use", ["reduced", "a clone in its format", "bytes named"])
def test_what_a_collective_made_contiguous_is_written_in_place(use: str, lowered: bool) -> None:
    """Inductor calls it on a copy of its own making, of which nothing is known."""
    how, label = USES[use]
    b = GraphBuilder()
    report = rewritten(b, how(b, broadcast(b, transposed(b))), lowered=lowered)
    assert (label in report.reinplaced) is not lowered


OPERATORS: dict[str, Callable[[GraphBuilder, Node], Node]] = {
    "heaviside": lambda b, x: b.call(aten.heaviside.default, x, b.placeholder(arange(6, 4))),
    "floor": lambda b, x: b.call(aten.div.Scalar_mode, x, 3, rounding_mode="floor"),
    "index_fill": lambda b, x: b.call(aten.index_fill.int_Scalar, x, 0, b.call(aten.arange.default, 1), 7),
    "ldexp": lambda b, x: b.call(aten.ldexp.Tensor, x, b.placeholder(arange(6, 4))),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_rows_of_what_is_computed_are_cloned_only_where_no_rule_tells_them(name: str) -> None:
    b = GraphBuilder()
    x = b.call(aten.permute.default, b.placeholder(arange(8, 8)[:4, :6]), [1, 0])
    rows = b.call(aten.slice.Tensor, OPERATORS[name](b, x), 0, 0, 3)
    new = b.v1(adversary.operator("bump"), x=rows)[-1]
    report = rewritten(b, b.call(aten.neg.default, new))
    assert ("reinplace_adversary::bump.x" in report.reinplaced) is (name != "ldexp")


@pytest.mark.parametrize("named", [None, "base", "handed"])
def test_what_device_put_hands_on_is_its_operand_whatever_offsets_name(named: str | None) -> None:
    """Of what is handed on they name the first elements of the storage, which are others than are written."""
    b = GraphBuilder()
    base = b.call(aten.neg.default, b.placeholder(arange(6, 4)))
    rows = b.call(aten.slice.Tensor, base, 0, 2, 4)
    handed = b.call(prims.device_put.default, rows, torch.device("cpu"))
    new = b.v1(adversary.operator("bump"), x=handed)[-1]
    of = {"base": base, "handed": handed}
    seen = [b.call(aten.as_strided.default, of[named], [2], [1], 0)] if named else []
    report = rewritten(b, *(b.call(aten.neg.default, n) for n in (new, *seen)))
    assert "reinplace_adversary::bump.x" in report.reinplaced


def test_rules_follow_on_each_other() -> None:
    """What is filled is told to be contiguous (torch 2.13), and so is what is made of it: neither is."""
    b = GraphBuilder()
    rows = b.call(aten.permute.default, b.placeholder(arange(8, 8)[:4, :6]), [1, 0])
    filled = OPERATORS["index_fill"](b, rows)
    signed = b.call(aten.copysign.Tensor, filled, b.placeholder(arange(6, 4)))
    assert signed.meta["val"].stride() == (4, 1)
    gm = b.finished([signed])
    (real,) = gm(*b.inputs)
    reinplace(gm)
    (node,) = gm.graph.find_nodes(op="call_function", target=aten.copysign.Tensor)
    assert node.meta["val"].stride() == real.stride() == (1, 6)


# -- and what must not be ----------------------------------------------------------------------


def test_bytes_that_real_strides_do_not_hold_keep_the_values_as_written() -> None:
    """The first row, by the strides that were told, lies beside it by the real ones."""
    b = GraphBuilder()
    value = OPERATORS["index_fill"](
        b, b.call(aten.permute.default, b.placeholder(arange(8, 8)[:4, :6]), [1, 0])
    )
    rows = b.item(b.call(aten.split.Tensor, value, 3, 0), 1)
    told = rows.meta["val"]
    view = b.call(aten.as_strided.default, rows, [4], [told.stride(1)], told.storage_offset())
    new = b.v2(adversary.operator("bump"), {"x": (rows, view)})[-1]
    rewritten(b, b.call(aten.neg.default, new), b.call(aten.neg.default, value))


def test_what_a_wrapper_returns_is_laid_out_by_what_it_reads() -> None:
    """A subgraph is called, so nothing is corrected; nor are bytes of a result written by an offset."""
    b = GraphBuilder()
    x = b.call(aten.permute.default, b.placeholder(arange(8, 8)[:4, :6]), [1, 0])
    other = OPERATORS["ldexp"](b, x)
    base = b.call(aten.neg.default, b.placeholder(torch.zeros(6, 4)))
    state = b.call(aten.neg.default, base)
    made_of, *_ = b.v2(
        adversary.operator("produce"), {"out": (base, base), "state": (state, state)}, other=other
    )
    part = b.call(aten.select.int, made_of, 0, 0)
    named = b.call(aten.as_strided.default, part, [2], [2], 0)
    new = b.v2(adversary.operator("bump"), {"x": (part, named)})[-1]
    report = rewritten(b, b.call(aten.neg.default, new), b.call(aten.neg.default, made_of))
    assert "reinplace_adversary::bump.x" not in report.reinplaced


@pytest.mark.parametrize("is_called", [False, True])
def test_a_subgraph_that_is_given_the_value_keeps_all_as_written(is_called: bool) -> None:
    b = GraphBuilder()
    x = broadcast(b, transposed(b))
    used = [reduced(b, x)]
    if is_called:
        inner = GraphBuilder(b.fake_mode)
        told = x.meta["val"]
        body = inner.finished([inner.call(aten.neg.default, inner.operand(told))])
        call = b.called(torch.ops.higher_order.invoke_subgraph, (b.subgraph(body), "body", x), (told,))
        used.append(b.item(call, 0))
    gm = b.finished(used)
    reinplace(gm)
    (wait, *_) = gm.graph.find_nodes(op="call_function", target=collective("wait_tensor"))
    assert wait.meta["val"].stride() == ((1, 6) if is_called else (4, 1))


def test_what_another_device_is_given_is_a_copy() -> None:
    b = GraphBuilder()
    x = broadcast(b, transposed(b))
    gm = b.finished([b.call(prims.device_put.default, x, torch.device("cuda:0"))])
    reinplace(gm)
    (node,) = gm.graph.find_nodes(op="call_function", target=prims.device_put.default)
    operand = node.all_input_nodes[0].meta["val"]
    assert operand.stride() == (4, 1)
    assert node.meta["val"].device.type == "cuda" and operand.device.type == "cpu"


def test_what_is_not_an_operator_is_not_run() -> None:
    b, called = GraphBuilder(), []
    x = broadcast(b, transposed(b))

    def look(x: Tensor) -> Tensor:
        called.append(x)
        return x + 1

    gm = b.finished([b.called(look, (x,), b.fresh(x.meta["val"]))])
    analyze(gm)
    assert called == []


def test_an_operator_that_resizes_in_place_is_not_run() -> None:
    b = GraphBuilder()
    x = broadcast(b, transposed(b))
    small = b.call(aten.arange.default, 3)
    gm = b.finished([b.called(aten.resize_as_.default, (small, x), small.meta["val"])])
    before = strides(gm)
    with pytest.raises(GraphError, match="functional graph"):
        analyze(gm)
    assert strides(gm) == before


def test_sizes_that_depend_on_data_are_bound_once() -> None:
    """Found again, they would be other symbols than the graph goes by."""
    b = GraphBuilder(FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True))
    found = b.call(aten.nonzero.default, broadcast(b, transposed(b)))
    found.meta["unbacked_bindings"] = unbacked_bindings(b.fake_mode, found.meta["val"])
    assert found.meta["unbacked_bindings"]
    gm = b.finished([b.call(aten.mul.Tensor, found, 2)])
    before = strides(gm)
    analyze(gm)
    assert strides(gm) == before


# -- the graph afterwards ----------------------------------------------------------------------


def test_analysis_leaves_the_values_as_they_were() -> None:
    gm = built(reduced)
    before = strides(gm)
    report = analyze(gm)
    assert "_c10d_functional::all_reduce.input" in report.reinplaced
    assert strides(gm) == before


def test_rewriting_leaves_the_true_values() -> None:
    gm = built(reduced)
    reinplace(gm)
    made_by = gm.graph.find_nodes(op="call_function", target=collective("broadcast"))[0]
    assert made_by.meta["val"].stride() == (4, 1)


def test_a_rewrite_that_fails_leaves_the_values_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    gm = built(reduced)
    before = copy.deepcopy(strides(gm))

    def fail(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(emit.Emitter, "call", fail)
    with pytest.raises(RewriteError, match="planted"):
        reinplace(gm)
    assert strides(gm) == before


def test_an_error_in_a_graph_is_told_as_ever() -> None:
    gm = built(reduced)
    (node,) = gm.graph.find_nodes(op="call_function", target=collective("all_reduce"))
    del node.meta["val"]
    with pytest.raises(GraphError, match="all_reduce"):
        reinplace(gm)


def test_a_graph_out_of_order_is_told_as_ever() -> None:
    gm = built(reduced)
    (node,) = gm.graph.find_nodes(op="call_function", target=collective("broadcast"))
    next(n for n in gm.graph.nodes if n.op == "output").prepend(node)
    with pytest.raises(GraphError, match="made before they are used"):
        reinplace(gm)


def test_a_wrapper_that_is_none_is_told_as_ever() -> None:
    gm = built(USES["bytes named"][0])
    (node,) = gm.graph.find_nodes(op="call_function", target=hop("auto_functionalized_v2"))
    node.kwargs = {**node.kwargs, "_x_base_index": 5}
    with pytest.raises(GraphError, match="_x_base_index"):
        reinplace(gm)


def test_collectives_that_make_all_contiguous_have_that_rule() -> None:
    names = [name for name, row in ROWS.items() if row.untold and row.laid_out is not None]
    assert len(names) == 2
    assert all(has_rule(collective(name.partition("::")[2])) for name in names)


def test_operands_that_do_not_fit_together_have_no_rule() -> None:
    assert made(aten.heaviside.default, [torch.empty(4, 6).t(), torch.empty(5)]) is None
    assert made(aten.heaviside.default, [torch.empty(4, 6).t()] * 3) is None
