"""1,000 graphs with something wrong in them: an error that names the node, or a right result, soon."""

from __future__ import annotations

import collections
import contextlib
import logging
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from pytest_reinplace.passes import (
    GraphError,
    ReinplaceError,
    ReinplacePass,
    Report,
    RewriteError,
    analyze,
    reinplace,
)
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.verify.equivalence import EquivalenceError, assert_equivalent
from pytest_reinplace.passes.verify.execution import attributes, cloned, leaves, run

from . import malformed
from .trace import arange, functional, ops

GRAPHS = 1000
SECONDS = 20  # for one graph; all of them take about as long
aten = torch.ops.aten


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise ``TimeoutError`` inside the block, where the platform can."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no answer in {seconds} s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def contents(gm: GraphModule) -> list[Any]:
    """Return all that a graph consists of, objects by their identity."""
    return [
        (id(n), n.name, n.op, n.target, str(n.args), str(n.kwargs), {k: id(v) for k, v in n.meta.items()})
        for n in gm.graph.nodes
    ]


def answer(entry: Any, gm: GraphModule) -> Report | ReinplaceError:
    try:
        with time_limit(SECONDS):
            report: Report = entry(gm)
            return report
    except ReinplaceError as error:
        return error


def specifies(gm: GraphModule, inputs: list[Any]) -> bool:
    """Return whether a malformed graph can be run all the same, and its recorded values are what it makes."""
    made: dict[Node, Any] = {}
    try:
        own = attributes(gm)
        copies = cloned([*inputs, *own.values()])
        run(gm, copies, dict(zip(own, copies[len(inputs) :], strict=True)), made.__setitem__)
        assert_equivalent(gm, gm, inputs)
        return all(map(agree, made.values(), (node.meta["val"] for node in made)))
    except Exception:  # noqa: BLE001  (it is malformed: anything may happen)
        return False


def agree(real: Any, fake: Any) -> bool:
    pairs = list(zip(leaves(real), leaves(fake), strict=True))
    return all(
        isinstance(one, torch.Tensor) == isinstance(two, torch.Tensor)
        and (not isinstance(one, torch.Tensor) or layout(one) == layout(two))
        for (_, one), (_, two) in pairs
    )


def layout(tensor: torch.Tensor) -> Any:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)  # FakeTensor logs what it refuses
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("part", range(10))
def test_each_is_refused_by_name_or_done_right(
    part: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    size = GRAPHS // 10
    met: collections.Counter[str] = collections.Counter()
    for seed in range(part * size, (part + 1) * size):
        graph, gm, changes = malformed.build(seed)
        _, twin, _ = malformed.build(seed)
        about, before = f"seed {seed}: {changes}", contents(gm)
        said = answer(analyze, gm)
        assert contents(gm) == before, about
        found = answer(reinplace, gm)
        if isinstance(found, ReinplaceError):
            assert contents(gm) == before, about
            assert any(n.name in str(found) for n in gm.graph.nodes), f"{about}: {found}"
            assert isinstance(found, RewriteError) or type(found) is GraphError, about
            met["refused"] += 1
            continue
        assert said == found, about
        met["taken"] += 1
        if "strange_metadata" not in changes and specifies(twin, graph.inputs):
            try:
                assert_equivalent(twin, gm, graph.inputs)
            except EquivalenceError as error:
                raise AssertionError(f"{about}: {error}\n{twin.graph}") from error
            met["right"] += 1
    assert met["refused"] > size // 5 and met["taken"] > size // 5 and met["right"] > 2, met


def test_every_change_occurs() -> None:
    seen = {name for seed in range(GRAPHS) for name in malformed.build(seed)[2]}
    assert seen == {change.__name__ for change in malformed.CHANGES}


def test_inside_inductor_none_of_them_breaks_the_compilation() -> None:
    for seed in range(0, 300, 3):
        _, gm, changes = malformed.build(seed)
        try:
            with time_limit(SECONDS):
                assert isinstance(ReinplacePass().apply(gm.graph), Report), changes
        except ReinplaceError as error:
            raise AssertionError(f"seed {seed}: {changes}") from error


# -- one by one ------------------------------------------------------------------------------------


def traced(v2: bool = True) -> GraphModule:
    def program(cache: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        ops.scale(cache[1:], value)
        return value * 2

    return functional(program, arange(3, 4), arange(2, 4), v2=v2)[0]


def wrapper(gm: GraphModule) -> Node:
    return next(n for n in gm.graph.nodes if "auto_functionalized" in str(n.target))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"_x_base_index": -1}, "expected a number below 1 as _x_base_index, got -1"),
        ({"_x_base_index": 1}, "expected a number below 1 as _x_base_index, got 1"),
        ({"_all_bases": None}, "expected a list of tensors as _all_bases, got None"),
        ({"_all_bases": [None]}, "expected a list of tensors as _all_bases"),
        ({"_x_slice_dim": 9}, "expected a dimension of the base as _x_slice_dim, got 9"),
    ],
)
def test_a_v2_wrapper_that_does_not_fit(changed: dict[str, Any], message: str) -> None:
    gm = traced()
    node = wrapper(gm)
    node.kwargs = {**node.kwargs, **changed}
    with pytest.raises(GraphError, match=message) as caught:
        reinplace(gm)
    assert node.name in str(caught.value) and "reinplace_test.scale" in str(caught.value)


@pytest.mark.parametrize("gone", ["by", "_x_slice_end", "_x_base_index", "_all_bases"])
def test_a_v2_wrapper_without_an_argument(gone: str) -> None:
    gm = traced()
    node = wrapper(gm)
    node.kwargs = {k: v for k, v in node.kwargs.items() if k != gone}
    with pytest.raises(GraphError, match=f"{gone}.*{node.name}"):
        reinplace(gm)


@pytest.mark.parametrize("changed", [{"foo": 1}, {"x": 3}, {"x": None}])
def test_a_v1_wrapper_that_does_not_fit(changed: dict[str, Any]) -> None:
    gm = traced(v2=False)
    node = wrapper(gm)
    node.kwargs = {**node.kwargs, **changed}
    if changed == {"x": None}:
        assert reinplace(gm).outcomes[0].label != "reinplace_test::scale.x"
        return
    with pytest.raises(GraphError, match=node.name):
        reinplace(gm)


def test_a_wrapper_that_is_handed_on_whole_stays_as_it_is() -> None:
    gm = traced()
    node = wrapper(gm)
    output = next(n for n in gm.graph.nodes if n.op == "output")
    output.args = ((*output.args[0], node),)  # type: ignore[misc]
    assert [o.reason and o.reason.value for o in analyze(gm).outcomes][:1] == ["unsupported"]
    assert analyze(traced()).clones == []  # its twin


def test_results_from_the_end_are_not_mistaken() -> None:
    """``wrapper[-1]`` is the last base, not a result of the operator."""
    gm, twin = traced(), traced()
    for one in (gm, twin):
        for user in list(wrapper(one).users):
            user.args = (user.args[0], -1)
        one.recompile()
    reinplace(gm)
    assert_equivalent(twin, gm, [arange(3, 4), arange(2, 4)])


def test_a_graph_without_an_output_names_its_last_node() -> None:
    graph = Graph()
    graph.placeholder("x").meta["val"] = torch.ones(2)
    with pytest.raises(GraphError, match="with an output node, found none: the last node is x"):
        reinplace(graph)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="it is empty"):
        analyze(Graph())  # type: ignore[arg-type]


def test_a_bare_graph_is_taken_too() -> None:
    gm = traced()
    assert reinplace(gm.graph).clones == []  # type: ignore[arg-type]


def reaching(offset: int) -> tuple[GraphModule, list[Any]]:
    """Scatter into a row of a buffer by offsets into the storage."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(12.0).reshape(3, 4))
    row = builder.call(aten.select.int, builder.call(aten.mul.Tensor, x, 2), 0, 1)
    source = builder.call(aten.neg.default, builder.call(aten.select.int, x, 0, 2))
    new = builder.call(aten.as_strided_scatter.default, row, source, [4], [1], offset)
    return builder.finished([new]), builder.inputs


def test_bytes_beside_the_operand_are_out_of_reach() -> None:
    """The functional form copies the whole storage, so it may write there; a clone of the row may not."""
    gm, inputs = reaching(4)
    reinplace(gm)
    assert_equivalent(reaching(4)[0], gm, inputs)
    other, inputs = reaching(6)
    assert_equivalent(other, other, inputs)
    before = contents(other)
    with pytest.raises(GraphError, match="inside the tensor they are made from.*as_strided_scatter"):
        reinplace(other)
    assert contents(other) == before
