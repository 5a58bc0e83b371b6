"""The pass under test: how a callable is called, and what it may return."""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
import traceback
from typing import Any

import pytest
import torch

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.capture.pass_under_test import PassError, find, of
from pytest_reinplace.passes import GraphError, ReinplacePass

from .graphs import add_in_place, functional_of


@pytest.fixture(scope="module")
def gm() -> torch.fx.GraphModule:
    return functional_of(add_in_place)


def seen_by(make: Any, gm: torch.fx.GraphModule) -> type:
    seen: list[Any] = []
    of(make(seen)).rewrite(gm)
    return type(seen[0])


def named_graph(seen: list[Any]) -> Any:
    return lambda graph: seen.append(graph)


def named_g(seen: list[Any]) -> Any:
    return lambda g, *, strength=1: seen.append(g)


def named_otherwise(seen: list[Any]) -> Any:
    return lambda x: seen.append(x)


def without_a_name(seen: list[Any]) -> Any:
    return lambda *args: seen.extend(args)


def partial(seen: list[Any]) -> Any:
    return functools.partial(lambda strength, graph: seen.append(graph), 2)


def bound_method(seen: list[Any]) -> Any:
    class Passes:
        def rewrite(self, graph: Any) -> None:
            seen.append(graph)

    return Passes().rewrite


def annotated_with_a_name_for_checkers(seen: list[Any]) -> Any:
    def one_pass(x: fx.Graph) -> None:  # type: ignore[name-defined]  # noqa: F821
        seen.append(x)

    return one_pass


def wants_nodes(seen: list[Any]) -> Any:
    """Take a graph, which neither an annotation nor a name says."""

    def one_pass(x: Any) -> None:
        getattr(x, "graph", x).output(None)  # undone before the second call
        seen.extend((x, len(x.nodes)))
        x.erase_node(next(iter(reversed(x.nodes))))

    return one_pass


def wants_a_module(seen: list[Any]) -> Any:
    """Take a module, although its name says graph."""

    def one_pass(graph: Any) -> None:
        graph.recompile()
        seen.append(graph)

    return one_pass


def annotated_as_text(seen: list[Any]) -> Any:
    def one_pass(g: torch.fx.Graph) -> None:
        seen.append(g)

    return one_pass


def annotated_as_type(seen: list[Any]) -> Any:
    one_pass = annotated_as_text(seen)
    one_pass.__annotations__["g"] = torch.fx.Graph
    return one_pass


def annotated_as_module(seen: list[Any]) -> Any:
    def one_pass(graph: torch.fx.GraphModule) -> None:
        seen.append(graph)

    return one_pass


def custom_graph_pass(seen: list[Any]) -> Any:
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Custom(CustomGraphPass):  # type: ignore[misc]
        def __call__(self, g: Any) -> None:
            seen.append(g)

        def uuid(self) -> None:
            return None

    return Custom()


def inference_aware_pass(seen: list[Any]) -> Any:
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Aware(CustomGraphPass):  # type: ignore[misc]  # torch 2.11 has no CustomInferenceAwareGraphPass
        def __call__(self, graph: Any, is_inference: bool) -> None:
            seen.extend((graph, is_inference))

        def uuid(self) -> None:
            return None

    return Aware()


def class_of_pass(seen: list[Any]) -> Any:
    class Pass:
        def __call__(self, x: Any) -> None:
            seen.append(x)

    return Pass


@pytest.mark.parametrize(
    "make",
    [
        *(annotated_as_text, annotated_as_type, annotated_with_a_name_for_checkers, custom_graph_pass),
        *(inference_aware_pass, named_graph, named_g, partial, bound_method),
    ],
)
def test_some_get_the_graph(make: Any, gm: torch.fx.GraphModule) -> None:
    assert seen_by(make, gm) is torch.fx.Graph


@pytest.mark.parametrize(
    "make", [named_otherwise, without_a_name, annotated_as_module, class_of_pass, wants_a_module]
)
def test_all_others_get_the_module(make: Any, gm: torch.fx.GraphModule) -> None:
    assert issubclass(seen_by(make, gm), torch.fx.GraphModule)


def test_one_that_turns_out_to_take_a_graph_is_called_with_it_on_the_graph_as_it_was() -> None:
    gm = functional_of(add_in_place)
    count, seen = len(gm.graph.nodes), list[Any]()
    of(wants_nodes(seen)).rewrite(gm)
    assert seen == [gm.graph, count + 1]
    assert len(gm.graph.nodes) == count


@pytest.mark.parametrize("attribute", ["nosuch", "nodes.nosuch"])
def test_an_attribute_that_neither_has_is_an_error_of_the_pass(
    attribute: str, gm: torch.fx.GraphModule
) -> None:
    seen: list[Any] = []

    def one_pass(x: Any) -> None:
        seen.append(x)
        operator.attrgetter(attribute)(getattr(x, "graph", x))

    with pytest.raises(AttributeError, match="nosuch") as raised:
        of(one_pass, "mine:one_pass").rewrite(gm)
    assert len(seen) == 1
    count = len(gm.graph.nodes)
    assert raised.value.__notes__ == [f"raised by pass mine:one_pass, given a GraphModule of {count} nodes"]


@pytest.mark.parametrize("is_inference", [True, False])
def test_one_that_asks_is_told_whether_the_graph_is_for_inference(
    gm: torch.fx.GraphModule, is_inference: bool
) -> None:
    seen: list[Any] = []
    of(inference_aware_pass(seen)).rewrite(gm, is_inference=is_inference)
    assert seen == [gm.graph, is_inference]


def test_a_compilation_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("tests.plugin.passes.aware", inference_aware_pass(seen), raising=False)
    with Capture("tests.plugin.passes:aware", "graph"):
        torch.compile(add_in_place)(*add_in_place.inputs)
        assert seen[1::2] == [True]
        torch.compile(lambda x: (x * x).sum())(torch.ones(4, requires_grad=True)).backward()
    assert seen[1::2] == [True, False, False]


def test_our_pass_is_a_custom_graph_pass() -> None:
    gm = functional_of(add_in_place)
    of(ReinplacePass()).rewrite(gm)
    assert gm.graph.find_nodes(op="call_function", target=torch.ops.aten.index_put_.default)


@pytest.mark.parametrize("kind", ["PassResult", "GraphModule", "Graph"])
def test_a_pass_may_return_something_new_which_inductor_would_ignore(kind: str) -> None:
    from torch.fx.passes.infra.pass_base import PassResult

    gm = functional_of(add_in_place)
    new = torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))
    result = {"PassResult": PassResult(new, True), "GraphModule": new, "Graph": new.graph}[kind]
    with pytest.warns(UserWarning, match="pass mine:f returned a new Graph.*Inductor ignores"):
        of(lambda x: result, "mine:f").rewrite(gm)
    assert gm.graph is new.graph


def drops_an_input(graph: torch.fx.Graph) -> None:
    graph.erase_node(graph.placeholder("more"))
    first = next(iter(graph.nodes))
    first.replace_all_uses_with(list(graph.nodes)[1])
    graph.erase_node(first)


def disorders(graph: torch.fx.Graph) -> None:
    next(iter(graph.nodes)).prepend(list(graph.nodes)[-2])


def forgets_its_output(gm: torch.fx.GraphModule) -> None:
    gm.graph.erase_node(gm.graph.output_node())


def yields(gm: torch.fx.GraphModule) -> Any:
    yield gm


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            drops_an_input,
            "Graph of \\d+ nodes, left other placeholders: expected arg0_1, arg1_1, found arg1_1;",
        ),
        (disorders, "Graph of \\d+ nodes, left a broken graph: expected operands that are made before"),
        (
            forgets_its_output,
            "GraphModule of \\d+ nodes, left a broken graph: expected a graph with an output",
        ),
        (yields, "GraphModule of \\d+ nodes, returned a generator, whose body has not run"),
    ],
)
def test_what_a_pass_leaves_is_checked(wrong: Any, message: str) -> None:
    gm = functional_of(add_in_place)
    with pytest.raises(GraphError, match=f"pass {__name__}:{wrong.__name__}, given a {message}"):
        of(wrong).rewrite(gm)


def test_what_a_pass_raises_while_torch_compiles_says_which_and_keeps_its_traceback() -> None:
    with Capture("tests.plugin.passes:breaks", "graph"), pytest.raises(Exception) as raised:  # noqa: PT011
        torch.compile(add_in_place)(*add_in_place.inputs)
    assert "KeyError: 'in the middle'; raised by pass tests.plugin.passes:breaks, given a Graph" in str(
        raised.value
    )
    assert "raise KeyError" in "".join(traceback.format_tb(raised.value.__traceback__))


def test_anything_else_that_is_returned_is_ignored() -> None:
    gm = functional_of(add_in_place)
    graph = gm.graph
    of(lambda g: "done").rewrite(gm)
    assert gm.graph is graph


def test_names_are_found() -> None:
    assert find("inductor").is_stock
    assert find("exact").is_exact
    found = find("tests.plugin.passes:nothing")
    assert not found.is_stock
    assert not found.is_exact
    assert found.name == "tests.plugin.passes:nothing"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "pass 'int': expected a callable over a graph, got 3"),
        (contextlib.closing, "pass 'contextlib:closing': the class cannot be called without arguments"),
        (dict, "pass 'dict': its instances are not callable"),
    ],
)
def test_what_is_no_pass_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(PassError, match=message):
        of(wrong)


def test_a_module_that_fails_says_how(tmp_path: Any) -> None:
    (tmp_path / "broken_passes.py").write_text("1 / 0\n")
    message = r"module 'broken_passes' cannot be imported: ZeroDivisionError: .* \(at .*broken_passes.py:1\)"
    with pytest.raises(PassError, match=message):
        find("broken_passes:f", tmp_path)
