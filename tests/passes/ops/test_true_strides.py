"""Operators that lie about strides, draw in the order of memory, hide an alias, need an aligned beginning."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.utils._pytree import tree_leaves, tree_map_only

from pytest_reinplace.passes import Reason, Report, analyze, reinplace
from pytest_reinplace.passes._torch import collective, expecting_refusal
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.ops.schema import schema_of
from pytest_reinplace.passes.ops.true_strides import may_be_mistold
from pytest_reinplace.passes.verify import assert_equivalent

from ..nested import rewritten, twin
from ..trace import arange

aten, prims = torch.ops.aten, torch.ops.prims
Tensor = torch.Tensor

# What an argument that needs a value is given, where it is no tensor.
GIVEN = {
    "rounding_mode": "floor",
    "dtype": torch.float32,
    "dim": 0,
    "p": 0.5,
    "half_to_float": False,
    "input_dtype": torch.float32,
}

# Their kernels write beyond what they make where shapes do not fit, and end this process or a later test.
UNCHECKED = frozenset({"_weight_norm", "_weight_norm_interface", "_weight_norm_interface_backward"})


def held(b: GraphBuilder, *outputs: Node) -> Report:
    """Rewrite the graph and hold it against itself."""
    gm = b.finished([*outputs])
    after = GraphModule(gm, Graph())
    after.graph.output(after.graph.graph_copy(gm.graph, {}))
    report = reinplace(after)
    assert_equivalent(gm, after, b.inputs)
    return report


# -- what fake tensors say ---------------------------------------------------------------------


def overloads() -> Iterator[Any]:
    """Yield the functional operators that can be called with tensors and what is given above."""
    for name in dir(aten):
        packet = getattr(aten, name)
        if name.startswith("__") or name in UNCHECKED or not hasattr(packet, "overloads"):
            continue
        for op in (getattr(packet, overload) for overload in packet.overloads()):
            needed = [a for a in op._schema.arguments if not a.has_default_value()]
            is_pure = not any(a.alias_info for a in op._schema.arguments)
            if is_pure and any(str(a.type) == "Tensor" for a in needed):
                if all(str(a.type) == "Tensor" or a.name in GIVEN for a in needed):
                    yield op


def operands() -> list[Tensor]:
    """Return tensors of all kinds of strides, with numbers between 0 and 1."""
    torch.manual_seed(0)
    images = torch.rand(8, 12), torch.rand(12, 8)
    return [torch.rand(6, 4).t(), images[0][::2, ::2], images[1][::2, ::2].t()]


def calls(op: Any) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    return given(op, operands(), [torch.rand(6), torch.tensor(0.5), torch.rand(4, 6)])


def given(op: Any, firsts: list[Tensor], others: list[Tensor]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield calls of an operator: with one tensor for all, or with that and others, either way round."""
    needed = [a for a in op._schema.arguments if not a.has_default_value()]
    places = [i for i, a in enumerate(needed) if str(a.type) == "Tensor"]
    more: list[Tensor | None] = [None, *(others if len(places) > 1 else [])]
    for mine, other in itertools.product(firsts, more):
        for first in places[:2] if other is not None else places[:1]:
            tensors = [mine if other is None or i == first else other for i in range(len(needed))]
            values = [tensors[i] if i in places else GIVEN[a.name] for i, a in enumerate(needed)]
            pairs = list(zip(needed, values, strict=True))
            yield [v for a, v in pairs if not a.kwarg_only], {a.name: v for a, v in pairs if a.kwarg_only}


def results(op: Any, calls: Iterable[tuple[list[Any], dict[str, Any]]]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield what an operator really makes beside what fake tensors say."""
    for args, kwargs in calls:
        mode = FakeTensorMode()
        try:
            real = op(*args, **kwargs)
            fake_args, fake_kwargs = tree_map_only(Tensor, mode.from_tensor, (args, kwargs))
            with expecting_refusal(), mode:
                fake = op(*fake_args, **fake_kwargs)
        except Exception:  # noqa: BLE001 - an operator may refuse such operands in any way
            continue
        for a, b in zip(tree_leaves(real), tree_leaves(fake), strict=True):
            if isinstance(a, Tensor) and a.layout == torch.strided and a.shape == b.shape and a.numel():
                yield a, b


def lies(op: Any) -> bool:
    """Return whether some result has other strides than its fake tensor; not those of dimensions of one."""
    return any(
        any(s != t for s, t, n in zip(a.stride(), b.stride(), a.shape, strict=True) if n > 1)
        for a, b in results(op, calls(op))
    )


@pytest.mark.filterwarnings("ignore")
def test_whoever_lies_about_strides_is_listed() -> None:
    found = [op for op in overloads() if lies(op)]
    assert aten.copysign.Tensor in found  # or nothing was called
    assert [str(op) for op in found if not may_be_mistold(op)] == []


def image(*shape: int) -> Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if shape[0] == 3 and len(shape) == 4:  # a volume without a batch, its channels last
        return torch.rand(*shape).contiguous(memory_format=torch.channels_last)
    return torch.rand(*shape).contiguous(memory_format=formats[len(shape)])


def turned(*shape: int) -> Tensor:
    return torch.rand(*shape).transpose(-1, -2)


def unpooled() -> list[Any]:
    where = (
        torch.arange(6).reshape(1, 1, 3, 2).expand(2, 2, 3, 2).contiguous(memory_format=torch.channels_last)
    )
    return [image(2, 2, 3, 2), where, [3, 4]]


# Calls with sizes, or of several tensors that must fit together, which those above are not.
KNOWN_LIES: dict[Any, Callable[[], list[Any]]] = {
    aten.reflection_pad3d.default: lambda: [image(3, 5, 3, 3), [1] * 6],
    aten.replication_pad3d.default: lambda: [image(3, 5, 3, 3), [1] * 6],
    aten.reflection_pad2d_backward.default: lambda: [image(3, 3, 7, 7), image(3, 3, 5, 5), [1] * 4],
    aten.replication_pad2d_backward.default: lambda: [image(3, 3, 7, 7), image(3, 3, 5, 5), [1] * 4],
    aten.reflection_pad3d_backward.default: lambda: [image(3, 5, 7, 7), image(3, 3, 5, 5), [1] * 6],
    aten.replication_pad3d_backward.default: lambda: [image(3, 5, 7, 7), image(3, 3, 5, 5), [1] * 6],
    aten.max_unpool2d.default: unpooled,
    aten.hardtanh_backward.default: lambda: [torch.rand(5, 5), turned(5, 5), -1.0, 1.0],
    aten._native_batch_norm_legit.no_stats: lambda: [turned(2, 4, 3), None, None, True, 0.1, 1e-5],
    aten.mse_loss_backward.default: lambda: [turned(4, 5), turned(4, 5), turned(4, 5), 1],
    aten.smooth_l1_loss_backward.default: lambda: [turned(4, 5), turned(4, 5), turned(4, 5), 1, 1.0],
    aten.huber_loss_backward.default: lambda: [turned(4, 5), turned(4, 5), turned(4, 5), 1, 1.0],
    aten.glu_backward.default: lambda: [image(2, 3, 2, 2), image(2, 3, 2, 4), -1],
    aten.pow.Scalar: lambda: [1, turned(4, 5)],
}


@pytest.mark.parametrize("op", KNOWN_LIES, ids=str)
def test_whoever_was_found_to_lie_is_listed(op: Any) -> None:
    """Where it does no longer, with this torch, it may stay listed."""
    told = [a.stride() == b.stride() for a, b in results(op, [(KNOWN_LIES[op](), {})])]
    assert told and (schema_of(op).untold or all(told))


def test_most_of_those_that_were_found_to_lie_still_do() -> None:
    lying = [
        op
        for op, args in KNOWN_LIES.items()
        if any(a.stride() != b.stride() for a, b in results(op, [(args(), {})]))
    ]
    assert len(lying) > len(KNOWN_LIES) / 2


@pytest.mark.parametrize("name", ["native_batch_norm", "_native_batch_norm_legit_functional"])
def test_a_batch_norm_may_write_its_statistics(name: str) -> None:
    """The schema of the older one does not say so."""
    b = GraphBuilder()
    x, mean, var = (b.placeholder(torch.rand(*shape)) for shape in ((4, 3), (3,), (3,)))
    kept = b.call(aten.mul.Tensor, mean, 1.0)
    copy = b.call(aten.clone.default, kept)
    made = b.call(getattr(aten, name).default, x, None, None, copy, var, True, 0.1, 1e-5)
    gm = b.finished([b.item(made, 0), kept])
    assert (reinplace(twin(gm)).clones == []) is (name != "native_batch_norm")


# -- what is laid out anew ---------------------------------------------------------------------


def relaid(b: GraphBuilder) -> tuple[Node, Node]:
    """Return an input with gaps, transposed, and a result that may lie in its place, in its strides."""
    x = b.placeholder(arange(8, 8)[::2, ::2].t() + 1)
    return x, b.call(
        aten.masked_scatter.default, x, b.call(aten.gt.Scalar, x, 9), b.call(aten.mul.Tensor, x, 2)
    )


Reader = Callable[[GraphBuilder, Node], Node]
TOLD: dict[str, Reader] = {
    "mul": lambda b, x: b.call(aten.mul.Tensor, x, 2),
    "div": lambda b, x: b.call(aten.div.Tensor, x, 2),
}
LYING: dict[str, Reader] = {
    "floor": lambda b, x: b.call(
        aten.div.Tensor_mode, x, b.placeholder(torch.tensor(3.0)), rounding_mode="floor"
    ),
    "copysign": lambda b, x: b.call(aten.copysign.Tensor, x, b.placeholder(torch.tensor(-1.0))),
    "second operand": lambda b, x: b.call(aten.logaddexp.default, b.placeholder(arange(4)), x),
}
SEEDED: dict[str, Reader] = {
    "rand_like": lambda b, x: b.call(aten.rand_like.default, x),
    "randint_like": lambda b, x: b.call(aten.randint_like.default, x, 9),
    "multinomial": lambda b, x: b.call(aten.multinomial.default, x, 2),
    "of an empty one": lambda b, x: b.call(aten.bernoulli.p, b.call(aten.empty_like.default, x), 0.5),
}


@pytest.mark.parametrize("name", [*TOLD, *LYING, *SEEDED])
def test_a_result_keeps_its_strides_for_readers_that_do_not_tell_theirs(name: str) -> None:
    b = GraphBuilder()
    x, new = relaid(b)
    read = {**TOLD, **LYING, **SEEDED}[name](b, new)
    b.call(aten.copy_.default, x, new)
    report = held(b, read if name in LYING else b.call(aten.sum.dim_IntList, read, [0]))
    assert ("aten::masked_scatter.self" in report.reinplaced) is (name in TOLD)


@pytest.mark.parametrize("strides", ["contiguous", "gaps"])
def test_numbers_are_drawn_in_place_where_that_is_the_same_order(strides: str) -> None:
    b = GraphBuilder()
    x = b.placeholder(arange(4, 6) if strides == "contiguous" else arange(8, 12)[::2, ::2])
    new = b.call(aten.uniform.default, x)
    b.call(aten.copy_.default, x, new)
    report = held(b, b.call(aten.sum.dim_IntList, new, [0]))
    assert ("aten::uniform.self" in report.reinplaced) is (strides == "contiguous")


@pytest.mark.parametrize("is_transposed", [True, False])
def test_numbers_drawn_in_another_order_are_other_numbers(is_transposed: bool) -> None:
    """The functional form makes a contiguous tensor of any operand."""
    b = GraphBuilder()
    x = b.placeholder(arange(4, 6).t() if is_transposed else arange(6, 4))
    new = b.call(aten.bernoulli.p, x, 0.5)
    b.call(aten.copy_.default, x, new)
    report = held(b, b.call(aten.sum.dim_IntList, new, [0]))
    assert ("aten::bernoulli.self" in report.reinplaced) is not is_transposed


# -- collectives, hidden aliases ---------------------------------------------------------------


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
@pytest.mark.parametrize("name", ["broadcast", "all_reduce_coalesced"])
@pytest.mark.parametrize("is_transposed", [True, False])
def test_what_becomes_contiguous_in_a_collective_is_so_before(name: str, is_transposed: bool) -> None:
    b = GraphBuilder()
    value = b.call(aten.mul.Tensor, b.placeholder(arange(4, 6).t() if is_transposed else arange(6, 4)), 2)
    if name == "broadcast":
        started = b.call(collective(name), value, 0, "group")
    else:
        started = b.item(b.call(collective(name), [value], "sum", "group"), 0)
    done = b.call(collective("wait_tensor"), started)
    gm = b.finished([b.call(aten.neg.default, done)])
    reasons = [o.reason for o in reinplace(gm).outcomes if o.op.endswith(name)]
    assert reasons == ([Reason.LAYOUT] if is_transposed else [None])


@pytest.mark.parametrize("moves", [True, False])
def test_what_is_moved_to_its_own_device_is_the_operand(moves: bool) -> None:
    b = GraphBuilder()
    value = b.call(aten.mul.Tensor, b.placeholder(arange(8)), 2)
    cpu = torch.device("cpu")
    there = b.call(prims.device_put.default, value, cpu) if moves else b.call(aten.neg.default, value)
    place = b.placeholder(torch.tensor([2]))
    new = b.call(aten.index_put.default, there, [place], b.placeholder(torch.ones(1)))
    report = held(b, new, value)
    assert ("aten::index_put.self" in report.reinplaced) is not moves


def test_what_is_returned_as_it_is_may_be_written_where_nobody_needs_it() -> None:
    b = GraphBuilder()
    value = b.call(aten.mul.Tensor, b.placeholder(arange(8)), 2)
    there = b.call(prims.device_put.default, b.call(aten.lift.default, value), torch.device("cpu"))
    new = b.call(
        aten.index_put.default, there, [b.placeholder(torch.tensor([2]))], b.placeholder(torch.ones(1))
    )
    report = held(b, new)
    assert report.clones == []


def test_what_is_moved_to_another_device_is_not_the_operand() -> None:
    b = GraphBuilder()
    value = b.call(aten.mul.Tensor, b.placeholder(arange(8)), 2)
    there = b.call(prims.device_put.default, value, torch.device("meta"))
    place = b.call(aten.arange.default, 1, device="meta")
    new = b.call(aten.index_put.default, there, [place], b.call(aten.ones.default, [1], device="meta"))
    report = analyze(b.finished([b.call(aten.neg.default, new), value]))
    assert report.reinplaced == ["aten::index_put.self"]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("moves", [True, False])
def test_offsets_into_what_hides_its_beginning_keep_the_graph_as_it_is(first: int, moves: bool) -> None:
    """What is moved to its own device begins where it did; the graph says that it is a copy."""
    b = GraphBuilder()
    part = b.call(aten.slice.Tensor, b.placeholder(arange(9)), 0, first, first + 8)
    there = b.call(prims.device_put.default, part, torch.device("cpu"))
    value = b.call(aten.clone.default, there if moves else part)
    view = b.call(aten.as_strided.default, value, [2], [1], 2)
    new = b.v2(adversary.operator("bump"), {"x": (value, view)})[-1]
    report = held(b, b.call(aten.neg.default, new))
    assert ("reinplace_adversary::bump.x" in report.reinplaced) is not (moves and first)


# -- beginnings --------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [1, 2])
def test_complex_numbers_begin_at_whole_ones(first: int) -> None:
    """A clone of what begins elsewhere stays one, or begins there, too; nothing is refused at run time."""
    b = GraphBuilder()
    value = b.call(aten.mul.Tensor, b.placeholder(arange(10)), 2)
    part = b.call(aten.clone.default, b.call(aten.slice.Tensor, value, 0, first, first + 8))
    pairs = b.call(aten.view_as_complex.default, b.call(aten.view.default, part, [4, 2]))
    report = held(b, b.call(aten.mul.Tensor, pairs, 2))
    assert ("aten::clone.self" in report.reinplaced) is (first == 2)


@pytest.mark.parametrize("first", [1, 2])
def test_larger_items_begin_at_whole_ones(first: int) -> None:
    b = GraphBuilder()
    value = b.call(aten.mul.Tensor, b.placeholder(arange(10).to(torch.float32)), 2)
    part = b.call(aten.clone.default, b.call(aten.slice.Tensor, value, 0, first, first + 8))
    larger = b.call(prims.view_of_dtype.default, part, torch.float64)
    report = held(b, b.call(aten.neg.default, larger))
    assert ("aten::clone.self" in report.reinplaced) is (first == 2)


Look = Callable[[Tensor], Tensor]
LOOKS: dict[str, Look] = {
    "by another dtype": lambda s: s.view(torch.int64),
    "by an offset": lambda s: aten.as_strided_copy.default(s, [3], [2], 2),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_subgraph_may_look_at_where_its_operand_begins(name: str) -> None:
    look = LOOKS[name]

    def fn(flag: Tensor, x: Tensor) -> Tensor:
        part = (x * 2)[1:9].clone()
        seen: Tensor = torch.cond(flag, lambda s: look(s) + 1, lambda s: look(s) + 2, (part,))
        return seen

    rewritten(fn, torch.tensor(True), arange(9), also=[False])


@pytest.mark.parametrize("name", LOOKS)
def test_it_may_be_looked_at_where_the_result_of_a_subgraph_begins(name: str) -> None:
    look = LOOKS[name]

    def fn(flag: Tensor, x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        made: Tensor = torch.cond(
            flag,
            lambda x, i, v: (x * 3)[1:9].index_put((i,), v),
            lambda x, i, v: (x * 4)[1:9].index_put((i,), v),
            (x, i, v),
        )
        return look(made) + 1

    rewritten(fn, torch.tensor(True), arange(9), torch.tensor([2]), torch.ones(1), also=[False])


@pytest.mark.parametrize("is_handed_on", [True, False])
def test_what_a_subgraph_moves_to_where_it_is_is_its_operand(is_handed_on: bool) -> None:
    b = GraphBuilder()
    x = b.call(aten.neg.default, b.placeholder(arange(4, 6)))
    inner = GraphBuilder(b.fake_mode)
    given = inner.operand(x.meta["val"])
    made = given if is_handed_on else inner.call(aten.neg.default, given)
    body = inner.finished([inner.call(prims.device_put.default, made, torch.device("cpu"))])
    value = (torch.empty_like(x.meta["val"]),)
    call = b.called(torch.ops.higher_order.invoke_subgraph, (b.subgraph(body), "body", x), value)
    new = b.v1(adversary.operator("bump"), x=b.item(call, 0))[-1]
    gm = b.finished([b.call(aten.neg.default, new), b.call(aten.neg.default, x)])
    after = twin(gm)
    report = reinplace(after)
    assert_equivalent(gm, after, b.inputs)
    assert ("reinplace_adversary::bump.x" in report.reinplaced) is not is_handed_on


@pytest.mark.parametrize("wrapper", ["v1", "v2"])
def test_empty_memory_has_strides_that_are_told(wrapper: str) -> None:
    """The kernel makes this result contiguous, its fake tensor is transposed, and no rule is known."""
    b = GraphBuilder()
    x = b.call(aten.permute.default, b.placeholder(torch.rand(4, 6)), [1, 0])
    value = b.call(aten.log_sigmoid.default, x)
    assert schema_of(aten.log_sigmoid.default).untold
    overwrite, other = adversary.operator("overwrite"), b.placeholder(torch.rand(6, 4))
    if wrapper == "v1":
        new = b.v1(overwrite, out=value, other=other)[-1]
    else:
        new = b.v2(overwrite, {"out": (value, value)}, other=other)[-1]
    assert "reinplace_adversary::overwrite.out" in held(b, new, value).clones


@pytest.mark.parametrize("is_told", [False, True])
def test_a_clone_in_a_format_of_its_own_is_made_of_what_is_not_told(is_told: bool) -> None:
    """``resize_as`` keeps the strides of a transposed operand, and its fake tensor is contiguous."""
    b = GraphBuilder()
    x = b.call(aten.permute.default, b.placeholder(arange(4, 6)), [1, 0])
    told = b.call(aten.neg.default, b.placeholder(arange(6, 4)))
    value = told if is_told else b.call(aten.resize_as.default, x, x)
    report = held(b, b.call(aten.clone.default, value, memory_format=torch.contiguous_format))
    assert ("aten::clone.self" in report.reinplaced) is is_told


@pytest.mark.parametrize("offset", [(), (0,)])
def test_strides_of_its_own_name_other_bytes_of_what_is_not_told(offset: tuple[int, ...]) -> None:
    """By the fake tensor's strides the bytes are of the first column, by the real ones they are a row."""
    b = GraphBuilder()
    x = b.call(aten.permute.default, b.placeholder(torch.rand(4, 6)), [1, 0])
    value = b.call(aten.log_sigmoid.default, x)
    row = b.call(aten.as_strided.default, value, [4], [1], *offset)
    new = b.v1(adversary.operator("bump"), x=row)[-1]
    column = b.call(aten.select.int, value, 1, 1)
    read = b.v1(adversary.operator("mix"), x=b.call(aten.neg.default, new), other=column)[-1]
    assert "reinplace_adversary::bump.x" not in held(b, read).reinplaced
