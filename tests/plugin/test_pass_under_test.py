"""The pass under test: how a callable is called, and what it may return."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.capture.pass_under_test import PassError, find, of
from pytest_reinplace.passes import ReinplacePass

from .graphs import add_in_place, functional_of


@pytest.fixture(scope="module")
def gm() -> torch.fx.GraphModule:
    return functional_of(add_in_place)


def seen_by(make: Any, gm: torch.fx.GraphModule) -> type:
    seen: list[Any] = []
    of(make(seen)).rewrite(gm)
    return type(seen[0])


def unannotated(seen: list[Any]) -> Any:
    return lambda g: seen.append(g)


def annotated_as_text(seen: list[Any]) -> Any:
    def one_pass(g: torch.fx.Graph) -> None:
        seen.append(g)

    return one_pass


def annotated_as_type(seen: list[Any]) -> Any:
    one_pass = annotated_as_text(seen)
    one_pass.__annotations__["g"] = torch.fx.Graph
    return one_pass


def annotated_as_module(seen: list[Any]) -> Any:
    def one_pass(g: torch.fx.GraphModule) -> None:
        seen.append(g)

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
        def __call__(self, g: Any) -> None:
            seen.append(g)

    return Pass


@pytest.mark.parametrize(
    "make", [annotated_as_text, annotated_as_type, custom_graph_pass, inference_aware_pass]
)
def test_some_get_the_graph(make: Any, gm: torch.fx.GraphModule) -> None:
    assert seen_by(make, gm) is torch.fx.Graph


@pytest.mark.parametrize("make", [unannotated, annotated_as_module, class_of_pass])
def test_all_others_get_the_module(make: Any, gm: torch.fx.GraphModule) -> None:
    assert issubclass(seen_by(make, gm), torch.fx.GraphModule)


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


@pytest.mark.parametrize("as_result", [False, True])
def test_a_pass_may_return_a_new_module(as_result: bool) -> None:
    from torch.fx.passes.infra.pass_base import PassResult

    gm = functional_of(add_in_place)
    new = torch.fx.GraphModule(gm, torch.fx.Graph())

    of(lambda g: PassResult(new, True) if as_result else new).rewrite(gm)
    assert gm.graph is not None
    assert len(gm.graph.nodes) == 0


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
        (contextlib.closing, "pass 'closing': the class cannot be called without arguments"),
        (dict, "pass 'dict': its instances are not callable"),
    ],
)
def test_what_is_no_pass_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(PassError, match=message):
        of(wrong)


def test_a_module_that_fails_says_how(tmp_path: Any) -> None:
    (tmp_path / "broken_passes.py").write_text("1 / 0\n")
    with pytest.raises(PassError, match="module 'broken_passes' cannot be imported: ZeroDivisionError"):
        find("broken_passes:f", tmp_path)
