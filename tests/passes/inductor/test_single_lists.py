"""Lists that Inductor makes no kernel of on a GPU, and lists whose values must be in memory before."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch.fx import Graph, Node

from pytest_reinplace.passes import ReinplacePass
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.mend.single_lists import singles, take_apart

aten = torch.ops.aten


class Lists(GraphBuilder):
    """A graph with inputs on a GPU that need not be there."""

    device = "cuda"

    def given(self, *sizes: int) -> list[Node]:
        with self.fake_mode:
            return [self.operand(torch.empty(size, device=self.device)) for size in sizes]

    def list_of(self, op: Any, *args: Any) -> list[Node]:
        made = self.call(op, *args)
        return [self.item(made, i) for i in range(len(made.meta["val"]))]

    def returned(self, *nodes: Node) -> Graph:
        self.finished(list(nodes))
        return self.graph


class OnCpu(Lists):
    device = "cpu"


def names(nodes: list[Node]) -> list[str]:
    return [str(node.target).removeprefix("aten.") for node in nodes]


def one_for_two(b: Lists) -> Graph:
    """A value that two elements read."""
    x, y, w = b.given(8, 8, 8)
    shared = b.call(aten.exp.default, w)
    return b.returned(*b.list_of(aten._foreach_add.List, [x, y], [shared, shared]))


def adam(b: Lists, sizes: tuple[int, ...], clip: bool = True) -> Graph:
    """A step of Adam over a list of parameters, with clipped gradients and a learning rate on the GPU."""
    params, grads, means, squares = (b.given(*sizes) for _ in range(4))
    (rate,) = b.given(1)
    rate = b.call(aten.view.default, rate, [])
    if clip:
        norms = [b.call(aten.linalg_vector_norm.default, g) for g in grads]
        total = b.call(aten.linalg_vector_norm.default, b.call(aten.stack.default, norms))
        factor = b.call(aten.clamp_max.default, b.call(aten.reciprocal.default, total), 1.0)
        grads = b.list_of(aten._foreach_mul.Tensor, grads, factor)
    scaled = b.list_of(aten._foreach_mul.Scalar, means, 0.9)
    new_means = b.list_of(aten._foreach_add.List, scaled, grads)
    kept = b.list_of(aten._foreach_mul.Scalar, squares, 0.99)
    new_squares = b.list_of(aten._foreach_addcmul.Scalar, kept, grads, grads, 0.01)
    roots = b.list_of(aten._foreach_add.Scalar, b.list_of(aten._foreach_sqrt.default, new_squares), 1e-8)
    steps = b.list_of(aten._foreach_mul.Tensor, b.list_of(aten._foreach_div.List, new_means, roots), rate)
    new_params = b.list_of(aten._foreach_sub.List, params, steps)
    for old, new in zip(params + means + squares, new_params + new_means + new_squares, strict=True):
        b.call(aten.copy_.default, old, new)
    return b.returned()


def test_each_element_is_computed_by_itself() -> None:
    graph = one_for_two(Lists())
    take_apart([n for n in graph.nodes if "_foreach" in str(n.target)])
    graph.lint()
    sums = [n for n in graph.nodes if n.target is aten.add.Tensor]
    x, y, _ = (n for n in graph.nodes if n.op == "placeholder")
    assert [n.args[0] for n in sums] == [x, y]
    assert not any("_foreach" in str(n.target) for n in graph.nodes)


def test_a_list_of_one_is_no_list() -> None:
    """Inductor does not compile all of them."""
    graph = adam(Lists(), (100,))
    count = sum("_foreach" in str(n.target) for n in graph.nodes)
    found = singles(graph)
    assert len(found) == count > 5
    take_apart(found)
    graph.lint()
    assert not any("_foreach" in str(n.target) for n in graph.nodes)
    assert singles(adam(OnCpu(), (100,))) == singles(adam(Lists(), (100, 1))) == []


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("parted", [True, False])
def test_a_list_of_which_some_is_in_place_is_no_list_on_a_gpu(parted: bool, device: str) -> None:
    """Parts of it would have other neighbours in their kernel than the whole had."""
    b = Lists()
    b.device = device
    given = b.given(8, 8, 8)
    made = b.list_of(aten._foreach_add.Scalar, given, 1)
    for old, new in zip(given[parted:], made[parted:], strict=True):
        b.call(aten.copy_.default, old, new)
    graph = b.returned(made[0]) if parted else b.returned()
    ReinplacePass().apply(graph)
    lists = [len(n.args[0]) for n in graph.nodes if "_foreach" in str(n.target)]
    whole = [3] if not parted else [] if device == "cuda" else [1, 2]
    assert lists == whole


def stored(graph: Graph) -> list[str]:
    """Put everything in place, and return what is put into memory before a list is stored."""
    ReinplacePass().apply(graph)
    copies: list[Any] = [n for n in graph.nodes if n.target is aten.copy_.default]
    return [n.args[1].name for n in copies if n.args[0].target is aten.empty_strided.default]


def crosswise(b: Lists, order: tuple[int, int]) -> tuple[Graph, list[Node]]:
    """Two elements, each made of what is computed from one of both."""
    both = b.given(8, 8)
    made = [b.call(aten.exp.default, both[i]) for i in order]
    for old, value in zip(both, b.list_of(aten._foreach_add.List, both, made), strict=True):
        b.call(aten.copy_.default, old, value)
    return b.returned(), made


@pytest.mark.parametrize("builder", [Lists, OnCpu])
def test_what_is_made_of_another_element_is_in_memory_before(builder: type[Lists]) -> None:
    graph, made = crosswise(builder(), (1, 0))
    assert stored(graph) == [n.name for n in made]


@pytest.mark.parametrize("builder", [Lists, OnCpu])
def test_what_is_made_of_the_same_element_is_computed_where_it_is_stored(builder: type[Lists]) -> None:
    graph, _ = crosswise(builder(), (0, 1))
    assert stored(graph) == []


def in_parts(b: Lists, op: Any, *args: Any) -> Graph:
    """Parts of a buffer, all written by an operator over lists, and stored back."""
    (whole,) = b.given(9)
    sliced = [b.call(aten.slice.Tensor, whole, 0, i, i + 3) for i in (0, 3, 6)]
    new = whole
    for i, made in zip((0, 3, 6), b.list_of(op, sliced, *args), strict=True):
        new = b.call(aten.slice_scatter.default, new, made, 0, i, i + 3)
    b.call(aten.copy_.default, whole, new)
    return b.returned()


@pytest.mark.parametrize("builder", [Lists, OnCpu])
def test_elements_without_a_kernel_are_computed_right_before_they_are_stored(builder: type[Lists]) -> None:
    """A kernel for all of a list is one, whatever it costs in memory."""
    graph = in_parts(builder(), aten._foreach_sub.Scalar, 2)
    report = ReinplacePass().apply(graph)
    graph.lint()
    called = [n.target for n in graph.nodes if n.target not in (aten.slice.Tensor, operator.getitem)]
    called = [str(t) for t in called if isinstance(t, torch._ops.OpOverload)]
    if builder is OnCpu:
        assert report.reinplaced[:3] == [f"aten::_foreach_sub.self[{i}]" for i in range(3)]
        assert called == ["aten.sub.Scalar", "aten.copy_.default"] * 3
    else:
        assert called[0] == "aten._foreach_sub.Scalar"


@pytest.mark.parametrize("builder", [Lists, OnCpu])
def test_a_tensor_for_all_is_given_to_each_element_in_its_kernel(builder: type[Lists]) -> None:
    b = builder()
    (factor,) = b.given(1)
    graph = in_parts(b, aten._foreach_mul.Tensor, b.call(aten.view.default, factor, []))
    ReinplacePass().apply(graph)
    assert [str(n.target) for n in graph.nodes if "_foreach" in str(n.target)] == ["aten._foreach_mul_.List"]
