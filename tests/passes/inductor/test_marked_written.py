"""Buffers that are made of nothing, and written by kernels that Inductor does not see to write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._inductor.utils import run_and_get_code
from torch.torch_version import TorchVersion

from pytest_reinplace.passes import inductor_options, observe
from pytest_reinplace.passes.inductor.mend.marked_written import mark

Results = tuple[torch.Tensor, ...]

WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "normal": lambda x: x.normal_(),
    "part": lambda x: x[2:5].uniform_(),
    "mask": lambda x: x.masked_scatter_(torch.arange(8) % 3 == 0, torch.ones(8)),
    "twice": lambda x: x.index_reduce_(0, torch.tensor([1, 2]), torch.full((2,), 5.0), "amax").exponential_(),
}

MADE: dict[str, Callable[[], torch.Tensor]] = {
    "full": lambda: torch.full((8,), 3.0),
    "computed": lambda: torch.arange(8) * 2.0,
    "empty": lambda: torch.empty(8),
    "listed": lambda: torch._foreach_add([torch.ones(8)], 1)[0],
}


PAIRS = [
    (name, how)
    for name in MADE
    for how in WRITES
    if name != "empty" or how not in ("part", "mask")  # the rest of which holds anything
]

# Inductor before torch 2.13 draws random numbers in another order than the program: there each is alone.
IN_ORDER = TorchVersion(torch.__version__) >= (2, 13)
PROGRAMS = [PAIRS] if IN_ORDER else [[pair] for pair in PAIRS]


def program(pairs: list[tuple[str, str]], given: torch.Tensor) -> Results:
    """Write what is made, and compute of it before and afterwards."""
    results = []
    for name, how in pairs:
        x = MADE[name]()
        before = x * 3 + given if name != "empty" else given
        WRITES[how](x)
        results += [before, x[1:] * 2 + given[1:]]
        if how == "normal":
            results.append(x)
    return tuple(results)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch._inductor.config.patch(fallback_random=True, force_disable_caches=True):
        yield
    torch._dynamo.reset()


@pytest.mark.parametrize("pairs", PROGRAMS, ids=lambda pairs: "-".join(pairs[0]))
def test_what_is_written_is_read(pairs: list[tuple[str, str]]) -> None:
    torch.manual_seed(0)
    expected = program(pairs, torch.ones(8))
    torch.manual_seed(0)
    compiled = torch.compile(program, fullgraph=True, options=inductor_options())
    actual = compiled(pairs, torch.ones(8))
    for i, (one, other) in enumerate(zip(expected, actual, strict=True)):
        torch.testing.assert_close(one, other, msg=lambda text, i=i: f"result {i}: {text}")


def one(given: torch.Tensor) -> Results:
    x = torch.zeros(8)
    x.normal_()
    return x, x * 2


def of_input(given: torch.Tensor) -> Results:
    x = given * 2
    x.normal_()
    return x, x * 2


def marked(function: Callable[..., Results]) -> tuple[int, str]:
    """Return how many buffers of a compiled function are marked, and its code."""
    found = []

    def seen(report: object, graph: torch.fx.Graph) -> None:
        found.append(len(graph.find_nodes(op="call_function", target=torch.ops.aten.fill_.Scalar)))

    with observe(seen):
        _, (code,) = run_and_get_code(
            torch.compile(function, fullgraph=True, options=inductor_options()), torch.ones(8)
        )
    return sum(found), code


def test_no_code_is_made_of_a_mark() -> None:
    count, code = marked(one)
    assert count == 1
    assert code.count("empty_strided_cpu((8, )") == 2  # what is written, and what is computed of it
    assert "empty_strided_cpu((0, )" not in code
    assert "fill" not in code


def test_what_is_computed_of_an_input_is_not_marked() -> None:
    count, code = marked(of_input)
    assert count == 0
    assert "aten.normal_" in code


def test_complex_and_lowered_writes_are_left_alone() -> None:
    graph = torch.fx.Graph()
    for dtype, write, args in (
        (torch.complex64, torch.ops.aten.normal_.default, ()),
        (torch.float32, torch.ops.aten.fill_.Scalar, (2,)),
    ):
        made = graph.call_function(torch.ops.aten.full.default, ([8], 0), {"dtype": dtype})
        written = graph.call_function(write, (made, *args))
        made.meta["val"] = written.meta["val"] = torch.zeros(8, dtype=dtype)
    assert mark(graph) == 0
