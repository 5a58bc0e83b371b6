"""What Inductor computes in the very loop that stores by an index, of what the loop stores into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.mend.stored_early import realize
from pytest_reinplace.passes.inductor.schedule.check import watching_schedules
from pytest_reinplace.passes.inductor.target import INDUCTOR
from pytest_reinplace.passes.reinplacing.facts.options import Options
from pytest_reinplace.passes.reinplacing.run import reinplace_graph

from ..trace import functional

Tensor = torch.Tensor
Write = Callable[[Tensor, Tensor, Tensor], Any]

LENGTH, COUNT = 41, 30
PLACES = torch.arange(COUNT) * 7 % COUNT  # each once


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """With more than one, Inductor calls a kernel for some of these on CPUs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    torch.set_num_threads(threads)


# Each stores numbers into ``x`` at places.
SCATTERED: dict[str, Write] = {
    "scatter": lambda x, i, v: x.scatter_(0, i, v),
    "scatter_add": lambda x, i, v: x.scatter_add_(0, i, v),
    "scatter_reduce": lambda x, i, v: x.scatter_reduce_(0, i, v, "sum", include_self=False),
}
PUT: dict[str, Write] = {
    "index_put": lambda x, i, v: x.index_put_((i,), v),
    "index_put_accumulate": lambda x, i, v: x.index_put_((i,), v, accumulate=True),
    "index_copy": lambda x, i, v: x.index_copy_(0, i, v),
    "index_add": lambda x, i, v: x.index_add_(0, i, v),
}


def stored(program: Callable[..., Any]) -> int:
    """Return how many values are put into memory before all of them are stored where they belong."""
    given = torch.arange(LENGTH), torch.arange(LENGTH) + 7, PLACES
    graph = functional(program, *given)[0].graph
    assert reinplace_graph(graph, Options(target=INDUCTOR)).clones == []
    return realize(graph)


@pytest.mark.parametrize("name", SCATTERED)
@pytest.mark.parametrize("is_own", [True, False])
def test_what_is_scattered_is_put_into_memory_where_it_is_made_of_the_same(name: str, is_own: bool) -> None:
    assert stored(lambda x, w, i: SCATTERED[name](x, i, (x if is_own else w)[:COUNT] * 3)) == is_own


@pytest.mark.parametrize("name", PUT)
def test_what_is_put_inductor_puts_into_memory_itself(name: str) -> None:
    assert stored(lambda x, w, i: PUT[name](x, i, x[:COUNT] * 3)) == 0


def test_what_is_put_at_random_places_is_put_into_memory_here() -> None:
    """Inductor relies on no place coming twice; what is put is read at others all the same."""

    def put(x: Tensor, w: Tensor, i: Tensor) -> None:
        x[torch.randperm(LENGTH)[:COUNT]] = x[:COUNT] * 3

    assert stored(put) == 1


def test_what_is_put_at_places_of_which_some_are_random_inductor_puts_into_memory_itself() -> None:
    def put(x: Tensor, w: Tensor, i: Tensor) -> None:
        x[:36].view(6, 6)[torch.randperm(6)[:3], i[:3] % 6] = x[:3] * 3

    assert stored(put) == 0


@pytest.mark.usefixtures("quick")
def test_what_is_put_at_random_places_is_right() -> None:
    def put(x: Tensor) -> Tensor:
        places = torch.randperm(LENGTH)[:COUNT]
        x[places] = x[:COUNT] * 3
        return places

    torch.compiler.reset()
    with fresh_inductor_cache():
        compiled = torch.compile(put, fullgraph=True, options=inductor_options())
        for _ in range(4):
            x = torch.arange(LENGTH)
            places = compiled(x)
            expected = torch.arange(LENGTH).index_put((places,), torch.arange(COUNT) * 3)
            assert torch.equal(x, expected)


@pytest.mark.parametrize("name", {**SCATTERED, **PUT})
@pytest.mark.parametrize("is_own", [True, False])
def test_places_are_put_into_memory_where_they_are_made_of_the_same(name: str, is_own: bool) -> None:
    write = {**SCATTERED, **PUT}[name]
    assert stored(lambda x, w, i: write(x, (x if is_own else w)[:COUNT] % LENGTH, w[:COUNT])) == is_own


def test_what_is_computed_further_is_put_into_memory_at_the_end() -> None:
    assert (
        stored(lambda x, w, i: x.scatter_add_(0, i, ((x[:COUNT] * 3).flip(0) + w[:COUNT]).clamp(min=2))) == 1
    )


def every(x: Tensor, w: Tensor, i: Tensor) -> list[Tensor]:
    """Store into a buffer each what is made of it, and where it says."""
    made = []
    for write in (*SCATTERED.values(), *PUT.values()):
        values, places = x * 1, LENGTH - 1 - x
        write(values, i, values[:COUNT] * 3)
        write(places, places[:COUNT] % LENGTH, w[:COUNT])
        made += [values, places]
    x.scatter_add_(0, i, x[:COUNT] * 3)
    w.scatter_add_(0, w[:COUNT] % LENGTH, x[:COUNT])
    return made


def test_compiled_programs_are_right() -> None:
    def given() -> tuple[Tensor, Tensor, Tensor]:
        return torch.arange(LENGTH), (torch.arange(LENGTH) * 5 + 7) % LENGTH, PLACES

    expected, actual = given(), given()
    results = every(*expected)
    compiled = torch.compile(every, fullgraph=True, options=inductor_options())(*actual)
    for one, other in zip((*results, *expected), (*compiled, *actual), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("view", "count"),
    [
        (lambda x: x.diagonal(), 1),
        (lambda x: x.unfold(0, 2, 2)[0], 1),
        (lambda x: x.as_strided((4, 4), (8, 1)), 0),
        (lambda x: x[1:], 0),
        (lambda x: x[:, 1], 0),
        (lambda x: x.t(), 0),
    ],
)
def test_what_is_put_into_a_part_that_inductor_does_not_name_is_stored_before(
    view: Callable[[Tensor], Tensor], count: int
) -> None:
    def program(x: Tensor, i: Tensor) -> None:
        part = view(x)
        part[i] = part[i] * 2

    def other(x: Tensor, y: Tensor, i: Tensor) -> None:
        view(x)[i] = view(y)[i] * 2

    given = torch.arange(32).view(8, 4), torch.tensor([0, 3, 3])
    for function, inputs, expected in ((program, given, count), (other, (given[0], *given), 0)):
        graph = functional(function, *(t.clone() for t in inputs))[0].graph
        assert reinplace_graph(graph, Options(target=INDUCTOR)).clones == []
        assert realize(graph) == expected


def test_an_element_of_a_diagonal_that_is_put_twice_is_computed_of_the_old_one() -> None:
    def program(x: Tensor, i: Tensor) -> None:
        x.diagonal()[i] *= 2

    expected, actual, twice = (
        torch.arange(32.0).view(8, 4),
        torch.arange(32.0).view(8, 4),
        torch.tensor([3, 3]),
    )
    program(expected, twice)
    with watching_schedules(pytest.fail):
        torch.compile(program, fullgraph=True, options=inductor_options())(actual, twice)
    assert torch.equal(actual, expected)
