"""Collectives without a process group: they work at their wait, so what happens before it must not matter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import Reason, analyze, reinplace
from pytest_reinplace.passes._torch import collective
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify import EquivalenceError, assert_equivalent
from pytest_reinplace.passes.verify.collectives import InFlight, is_imitated
from pytest_reinplace.passes.verify.execution import RunError, cloned, run

aten = torch.ops.aten

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")


def overlapped(*, waits_first: bool) -> tuple[GraphModule, list[Any]]:
    """Reduce a value, and write over it before or after the wait."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(8))
    value = builder.call(aten.neg.default, x)
    started = builder.call(collective("all_reduce"), value, "sum", "group")
    if waits_first:
        done = builder.call(collective("wait_tensor"), started)
    new = builder.v1(adversary.operator("bump"), x=value)[-1]
    if not waits_first:
        done = builder.call(collective("wait_tensor"), started)
    return builder.finished([done, new]), builder.inputs


@pytest.mark.parametrize("waits_first", [True, False])
def test_bytes_are_in_use_until_the_wait(waits_first: bool) -> None:
    gm, inputs = overlapped(waits_first=waits_first)
    reasons = [o.reason for o in analyze(gm).outcomes if o.label == "reinplace_adversary::bump.x"]
    assert reasons == ([None] if waits_first else [Reason.IN_FLIGHT])
    reinplace(gm)
    assert_equivalent(overlapped(waits_first=waits_first)[0], gm, inputs)


def test_a_write_before_the_wait_shows() -> None:
    """What the pass refuses, done by hand: the oracle's execution tells the difference."""
    for waits_first in (True, False):
        gm, inputs = overlapped(waits_first=waits_first)
        specification, _ = overlapped(waits_first=waits_first)
        node = next(n for n in gm.graph.nodes if "auto_functionalized" in str(n.target))
        node.meta["only_clone_these_tensors"] = []
        if waits_first:
            assert_equivalent(specification, gm, inputs)
        else:
            with pytest.raises(EquivalenceError, match="output 0"):
                assert_equivalent(specification, gm, inputs)


@pytest.mark.parametrize(
    ("name", "more", "shape"),
    [
        ("all_reduce", ("sum", "g"), (4, 3)),
        ("broadcast", (0, "g"), (4, 3)),
        ("all_gather_into_tensor", (3, "g"), (12, 3)),
        ("reduce_scatter_tensor", ("sum", 2, "g"), (2, 3)),
    ],
)
def test_the_result_lands_at_the_wait(name: str, more: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    flight, x = InFlight(), torch.arange(12).reshape(4, 3)
    result = flight.call(collective(name), (x, *more), {})
    early = result.clone()
    x.add_(1)  # what a wrong pass would do
    late = flight.call(collective("wait_tensor"), (result,), {})
    assert late is result and result.shape == shape and not torch.equal(early, late)
    again = InFlight()
    other = again.call(collective(name), (x, *more), {})
    assert torch.equal(again.call(collective("wait_tensor"), (other,), {}), late)
    assert flight.call(collective("wait_tensor"), (result,), {}) is result  # a second wait changes nothing


def test_in_place_it_owns_the_bytes_until_the_wait() -> None:
    flight, x = InFlight(), torch.arange(6)
    wanted = InFlight()
    expected = wanted.call(collective("all_reduce"), (x.clone(), "sum", "g"), {})
    wanted.call(collective("wait_tensor"), (expected,), {})
    before = x.clone()
    result = flight.call(collective("all_reduce_"), (x, "sum", "g"), {})
    assert result is x and not torch.equal(x, before)
    flight.call(collective("wait_tensor"), (x,), {})
    assert torch.equal(x, expected)


def test_lists_and_results_that_are_given() -> None:
    flight = InFlight()
    one, two = torch.arange(4), torch.ones(2, 2, dtype=torch.int64)
    for result in flight.call(collective("all_reduce_coalesced"), ([one, two], "sum", "g"), {}):
        flight.call(collective("wait_tensor"), (result,), {})
        assert result.shape in (one.shape, two.shape)
    out = torch.zeros(8, dtype=torch.int64)
    gathered = collective("all_gather_into_tensor_out")
    assert flight.call(gathered, (one, 2, "g"), {"out": out}) is out
    flight.call(collective("wait_tensor"), (out,), {})
    assert torch.equal(out[:4], one)


def test_what_cannot_be_imitated_is_named() -> None:
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(4))
    done = builder.call(collective("all_to_all_single"), x, [2, 2], [2, 2], "g")
    gm = builder.finished([done])
    with pytest.raises(RunError, match="expected one of the collectives all_reduce, "):
        run(gm, cloned(builder.inputs))


def test_only_collectives_are_imitated() -> None:
    assert is_imitated(collective("all_reduce")) and is_imitated(collective("wait_tensor"))
    assert not is_imitated(aten.neg.default) and not is_imitated(print)


def test_the_wait_stays_although_nobody_uses_its_result() -> None:
    """In place, the copy back into the input is gone, and with it the only user of the wait."""

    def make() -> tuple[GraphModule, list[Any]]:
        builder = GraphBuilder()
        x = builder.placeholder(torch.arange(6))
        started = builder.call(collective("all_reduce"), x, "sum", "group")
        done = builder.call(collective("wait_tensor"), started)
        builder.call(aten.copy_.default, x, done)
        other = builder.call(aten.full.default, [2], 1)
        return builder.finished([other]), builder.inputs

    gm, inputs = make()
    assert reinplace(gm).clones == []
    assert collective("wait_tensor") in [n.target for n in gm.graph.nodes]
    assert_equivalent(make()[0], gm, inputs)


# -- several at once ------------------------------------------------------------------------------------


def coalesced(*, writes: str, at: str) -> tuple[GraphModule, list[Any]]:
    """Reduce two values in one call, wait for one after the other, and write over one on the way."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(8))
    values = {name: builder.call(op, x) for name, op in (("a", aten.neg.default), ("b", aten.abs.default))}
    both = builder.call(collective("all_reduce_coalesced"), list(values.values()), "sum", "group")
    parts = dict(zip(values, (builder.item(both, i) for i in range(2)), strict=True))
    results: list[Any] = []

    def write(where: str) -> None:
        if where == at:
            results.extend(builder.v1(adversary.operator("bump"), x=values[writes])[-1:])

    write("start")
    for name in parts:
        results.append(builder.call(collective("wait_tensor"), parts[name]))
        write(name)
    return builder.finished(results), builder.inputs


@pytest.mark.parametrize(("writes", "at"), [(w, at) for w in "ab" for at in ("start", "a", "b")])
def test_the_parts_of_a_coalesced_collective_are_in_use_until_the_last_wait(writes: str, at: str) -> None:
    """The write needs the value as well, so one copy stays; before the last wait both do."""
    gm, inputs = coalesced(writes=writes, at=at)
    report = reinplace(gm)
    assert_equivalent(coalesced(writes=writes, at=at)[0], gm, inputs)
    started = [str(n.target) for n in gm.graph.nodes if "all_reduce" in str(n.target)]
    assert started == ["_c10d_functional.all_reduce_coalesced_.default"]
    assert report.clone_bytes == 64 * len(report.clones) == (64 if at == "b" else 128)
    reasons = [o.reason for o in report.outcomes if o.label == "reinplace_adversary::bump.x"]
    assert reasons == [None if at == "b" else Reason.IN_FLIGHT]


@pytest.mark.parametrize("name", ["all_gather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced"])
@pytest.mark.parametrize("waits_first", [True, False])
def test_the_inputs_of_a_coalesced_collective_are_in_use_until_the_wait(name: str, waits_first: bool) -> None:
    def make() -> tuple[GraphModule, list[Any]]:
        builder = GraphBuilder()
        x = builder.placeholder(torch.arange(8))
        value = builder.call(aten.neg.default, x)
        more = (2, "group") if "gather" in name else ("sum", 2, "group")
        started = builder.item(builder.call(collective(name), [value, x], *more), 0)
        results = [builder.call(collective("wait_tensor"), started)] if waits_first else []
        results += builder.v1(adversary.operator("bump"), x=value)[-1:]
        if not waits_first:
            results.append(builder.call(collective("wait_tensor"), started))
        return builder.finished(results), builder.inputs

    gm, inputs = make()
    reasons = [o.reason for o in reinplace(gm).outcomes]
    assert reasons == ([None] if waits_first else [Reason.IN_FLIGHT])
    assert_equivalent(make()[0], gm, inputs)


@pytest.mark.parametrize("name", ["irecv", "batch_p2p_ops"])
def test_what_is_received_into_is_never_written_otherwise(name: str) -> None:
    """The schema says neither that the tensor is written nor that it is what is returned."""
    packet = getattr(torch.ops._c10d_functional, name, None)
    if packet is None:
        pytest.skip(f"torch has no {name}")
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(8))
    value = builder.call(aten.neg.default, x)
    old = builder.call(aten.clone.default, value)
    batch = (["irecv"], [0], [0], [value], "group")
    received = builder.call(packet.default, *(batch if name != "irecv" else (value, 0, 0, "group")))
    received = received if name == "irecv" else builder.item(received, 0)
    done = builder.call(collective("wait_tensor"), received)
    new = builder.v1(adversary.operator("bump"), x=done)[-1]
    gm = builder.finished([old, new])
    assert [(o.label, o.reason) for o in reinplace(gm).outcomes] == [
        ("aten::clone.self", Reason.UNKNOWN_OP),
        ("reinplace_adversary::bump.x", Reason.UNKNOWN_OP),
    ]


@pytest.mark.parametrize("given", ["gaps", "a dimension of one", "dense"])
def test_a_collective_works_on_memory_without_gaps(given: str) -> None:
    """Strides of dimensions of one are no gaps; the wait hands on what it was given."""
    builder = GraphBuilder()
    x = torch.arange(32)
    shaped = {"gaps": x[::4], "a dimension of one": x.view(4, 8)[:1], "dense": x.view(4, 8)}[given]
    operand = builder.placeholder(
        shaped if given != "a dimension of one" else shaped.as_strided((1, 8), (9, 1))
    )
    started = builder.call(collective("all_reduce"), operand, "sum", "group")
    done = builder.call(collective("wait_tensor"), started)
    total = builder.call(aten.sum.default, builder.call(aten.view.default, done, [-1]))
    builder.call(aten.copy_.default, operand, done)
    gm = builder.finished([total])
    before = builder.inputs
    label = "_c10d_functional::all_reduce.input"
    specification = torch.fx.GraphModule(gm, torch.fx.Graph())
    specification.graph.output(specification.graph.graph_copy(gm.graph, {}))
    report = reinplace(gm)
    assert_equivalent(specification, gm, before)
    assert (label in report.reinplaced) is (given != "gaps"), report
