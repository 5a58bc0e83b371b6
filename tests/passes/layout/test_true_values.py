"""What kernels lay out otherwise than fake values say: the rules of it, and that nobody writes by these."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from pytest_reinplace.passes import Report
from pytest_reinplace.passes._torch import collective
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
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


def rewritten(b: GraphBuilder, *outputs: Node, lowered: bool = False) -> Report:
    """Rewrite a graph as one that is run node by node, or as Inductor's, and hold it against itself."""
    gm = b.finished([*outputs])
    after = GraphModule(gm, Graph())
    after.graph.output(after.graph.graph_copy(gm.graph, {}))
    report = reinplace_graph(after.graph, Options(target=INDUCTOR if lowered else NODE_BY_NODE))
    after.recompile()
    assert_equivalent(gm, after, b.inputs)
    return report


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


# -- what stays ---------------------------------------------------------------------------------

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
def test_what_a_collective_made_contiguous_is_not_written_in_place(use: str, lowered: bool) -> None:
    """Its fake value is not; Inductor calls it on a copy of its own making, of which nothing is known."""
    how, label = USES[use]
    b = GraphBuilder()
    report = rewritten(b, how(b, broadcast(b, transposed(b))), lowered=lowered)
    assert label not in report.reinplaced


OPERATORS: dict[str, Callable[[GraphBuilder, Node], Node]] = {
    "heaviside": lambda b, x: b.call(aten.heaviside.default, x, b.placeholder(arange(6, 4))),
    "floor": lambda b, x: b.call(aten.div.Scalar_mode, x, 3, rounding_mode="floor"),
    "index_fill": lambda b, x: b.call(aten.index_fill.int_Scalar, x, 0, b.call(aten.arange.default, 1), 7),
    "ldexp": lambda b, x: b.call(aten.ldexp.Tensor, x, b.placeholder(arange(6, 4))),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_rows_of_what_is_computed_otherwise_than_told_are_cloned(name: str) -> None:
    b = GraphBuilder()
    x = b.call(aten.permute.default, b.placeholder(arange(8, 8)[:4, :6]), [1, 0])
    rows = b.call(aten.slice.Tensor, OPERATORS[name](b, x), 0, 0, 3)
    new = b.v1(adversary.operator("bump"), x=rows)[-1]
    report = rewritten(b, b.call(aten.neg.default, new))
    is_as_told = name in ("heaviside", "floor")
    assert ("reinplace_adversary::bump.x" in report.reinplaced) is is_as_told


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
    rewritten(b, *(b.call(aten.neg.default, n) for n in (new, *seen)))


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


def test_collectives_that_make_all_contiguous_have_that_rule() -> None:
    names = [name for name, row in ROWS.items() if row.untold and row.laid_out is not None]
    assert len(names) == 2
    assert all(has_rule(collective(name.partition("::")[2])) for name in names)


def test_operands_that_do_not_fit_together_have_no_rule() -> None:
    assert made(aten.heaviside.default, [torch.empty(4, 6).t(), torch.empty(5)]) is None
    assert made(aten.heaviside.default, [torch.empty(4, 6).t()] * 3) is None
