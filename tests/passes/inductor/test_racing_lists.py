"""Lists of which Inductor would make a kernel that races on a GPU, and those that it may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph, Node

from pytest_reinplace.passes import ReinplacePass
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.inductor.mend.racing_lists import racing, take_apart

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


def swapped(b: Lists) -> Graph:
    """Of two lists the second adds, to each element, what is made of the other one."""
    x, y, w, v = b.given(8, 8, 8, 8)
    first = b.list_of(aten._foreach_add.List, [x, y], [w, v])
    twice = b.list_of(aten._foreach_mul.Scalar, first, 2)
    results = b.list_of(aten._foreach_add.List, [first[1], first[0]], twice)
    return b.returned(*results)


def one_for_two(b: Lists) -> Graph:
    """A value that two elements read."""
    x, y, w = b.given(8, 8, 8)
    shared = b.call(aten.exp.default, w)
    return b.returned(*b.list_of(aten._foreach_add.List, [x, y], [shared, shared]))


def two_in_a_group(b: Lists) -> Graph:
    """Two values that are computed in one kernel, of one input, for an element each."""
    x, y, w = b.given(8, 8, 8)
    made = [b.call(aten.exp.default, w), b.call(aten.sin.default, w)]
    return b.returned(*b.list_of(aten._foreach_add.List, [x, y], made))


def overwritten(b: Lists) -> Graph:
    """What one element made is stored where another one reads."""
    x, y, w = b.given(8, 8, 8)
    made = b.list_of(aten._foreach_add.List, [x, y], [w, w])
    b.call(aten.copy_.default, y, made[0])
    return b.returned(made[1])


def overwritten_part(b: Lists) -> Graph:
    """What one element made is stored into a part that another one reads."""
    x, y, w, v = b.given(8, 16, 8, 8)
    high = b.call(aten.slice.Tensor, y, 0, 8, 16)
    made = b.list_of(aten._foreach_add.List, [x, high], [w, v])
    b.call(aten.copy_.default, y, b.call(aten.slice_scatter.default, y, made[0], 0, 6, 14))
    return b.returned(made[1])


def scalar_of_one(b: Lists) -> Graph:
    """A number that all elements are multiplied by, one of which is a number, too."""
    x, y, w = b.given(8, 1, 1)
    factor = b.call(aten.exp.default, w)
    return b.returned(*b.list_of(aten._foreach_mul.Tensor, [x, y], b.call(aten.view.default, factor, [])))


def across_a_part(b: Lists) -> Graph:
    """A part of what one element made, in another element of a list that is fused with the first."""
    x, y, w, v, z = b.given(8, 4, 8, 4, 4)
    first = b.list_of(aten._foreach_add.List, [x, y], [w, v])
    part = b.call(aten.slice.Tensor, first[0], 0, 0, 4)
    second = b.list_of(aten._foreach_mul.List, [w, v], [x, part])
    return b.returned(*first, *second, b.call(aten.neg.default, z))


def across_a_value(b: Lists) -> Graph:
    """The same, by way of a value that is computed again where it is used."""
    x, y, w, v = b.given(8, 4, 8, 4)
    first = b.list_of(aten._foreach_add.List, [x, y], [w, v])
    wide = b.call(aten.exp.default, b.call(aten.cat.default, [first[0], x]))
    part = b.call(aten.slice.Tensor, wide, 0, 0, 4)
    second = b.list_of(aten._foreach_mul.List, [w, v], [x, part])
    return b.returned(*first, *second)


RACING = [swapped, one_for_two, two_in_a_group, overwritten, overwritten_part, scalar_of_one]
RACING += [across_a_part, across_a_value]


@pytest.mark.parametrize("program", RACING, ids=lambda p: p.__name__)
def test_what_races_is_taken_apart(program: Callable[[Lists], Graph]) -> None:
    graph = program(Lists())
    output = next(n for n in graph.nodes if n.op == "output")
    vals = [n.meta["val"] for n in output.all_input_nodes]
    assert take_apart(graph)
    graph.lint()
    assert racing(graph) == []
    assert all(n.meta["val"] is v for n, v in zip(output.all_input_nodes, vals, strict=True))


@pytest.mark.parametrize("program", RACING, ids=lambda p: p.__name__)
def test_a_cpu_computes_each_element_by_itself(program: Callable[[Lists], Graph]) -> None:
    assert take_apart(program(OnCpu())) == 0


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


@pytest.mark.parametrize(
    ("sizes", "clip"),
    [((8, 8, 8), True), ((8, 8, 8), False), ((100, 8, 100, 30), True), ((1, 1), False)],
)
def test_an_optimizer_stays_as_it_is(sizes: tuple[int, ...], clip: bool) -> None:
    graph = adam(Lists(), sizes, clip)
    assert names(racing(graph)) == []
    assert take_apart(graph) == 0


def test_a_clipped_parameter_of_one_element_races() -> None:
    assert names(racing(adam(Lists(), (100, 1)))) != []


def parts_of_one_buffer(b: Lists, step: int) -> Graph:
    """Elements that are parts of one input, each stored back where it was, ``step`` elements apart."""
    (x,) = b.given(24)
    others = b.given(8, 8)
    parts = [b.call(aten.slice.Tensor, x, 0, step * i, step * i + 8) for i in range(2)]
    made = b.list_of(aten._foreach_add.List, parts, others)
    return b.returned(*made)


def test_parts_that_do_not_meet_are_no_race() -> None:
    assert racing(parts_of_one_buffer(Lists(), 8)) == []


def test_parts_that_meet_are() -> None:
    assert names(racing(parts_of_one_buffer(Lists(), 4))) == ["_foreach_add.List"]


def of_one_reduction(b: Lists, size: int) -> Graph:
    """A mean that both elements take, of ``size`` elements each: a loop, if they are many."""
    x, y = b.given(8, 8)
    (w,) = b.given(8 * size)
    mean = b.call(aten.mean.dim, b.call(aten.view.default, w, [8, size]), [1])
    return b.returned(*b.list_of(aten._foreach_add.List, [x, y], [mean, mean]))


def test_a_loop_is_no_part_of_the_kernel() -> None:
    assert racing(of_one_reduction(Lists(), 1024)) == []


def test_a_sum_of_few_is() -> None:
    assert racing(of_one_reduction(Lists(), 4)) != []


def test_a_constant_is_no_memory() -> None:
    b = Lists()
    x, y = b.given(8, 8)
    half = b.call(aten.full.default, [8], 0.5, device="cuda")
    assert racing(b.returned(*b.list_of(aten._foreach_add.List, [x, y], [half, half]))) == []


def test_a_constant_that_is_returned_is() -> None:
    b = Lists()
    x, y = b.given(8, 8)
    half = b.call(aten.full.default, [8], 0.5, device="cuda")
    assert racing(b.returned(half, *b.list_of(aten._foreach_add.List, [x, y], [half, half]))) != []


def test_an_input_that_nobody_writes_is_read_by_all() -> None:
    b = Lists()
    x, y, w = b.given(8, 8, 8)
    assert racing(b.returned(*b.list_of(aten._foreach_sub.List, [x, y], [w, w]))) == []


def test_each_element_is_computed_by_itself() -> None:
    graph = one_for_two(Lists())
    take_apart(graph)
    sums = [n for n in graph.nodes if n.target is aten.add.Tensor]
    x, y, _ = (n for n in graph.nodes if n.op == "placeholder")
    assert [n.args[0] for n in sums] == [x, y]
    assert not any("_foreach" in str(n.target) for n in graph.nodes)


def test_a_list_of_one_is_no_list() -> None:
    """Inductor does not compile all of them."""
    graph = adam(Lists(), (100,))
    count = sum("_foreach" in str(n.target) for n in graph.nodes)
    assert take_apart(graph) == count > 5
    assert not any("_foreach" in str(n.target) for n in graph.nodes)
    assert take_apart(adam(OnCpu(), (100,))) == 0


@pytest.mark.parametrize(("count", "races"), [(40, False), (80, True)])
def test_what_is_made_of_too_many_is_taken_to_meet_all(count: int, races: bool) -> None:
    b = Lists()
    xs, ys = b.given(*range(100, 100 + count)), b.given(*range(100, 100 + count))
    few = b.given(5, 5)
    made = b.list_of(aten._foreach_add.List, xs, ys)
    joined = b.call(aten.cat.default, [b.call(aten.slice.Tensor, n, 0, 0, 7) for n in made])
    part = b.call(aten.slice.Tensor, joined, 0, 0, 5)
    last = b.call(aten._foreach_mul.List, few, [part, part])
    graph = b.returned(b.item(last, 0), b.item(last, 1))
    assert racing(graph) == ([last] if races else [])


def test_the_pass_does_it() -> None:
    graph = swapped(Lists())
    ReinplacePass().apply(graph)
    assert not any("_foreach" in str(n.target) for n in graph.nodes)


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
