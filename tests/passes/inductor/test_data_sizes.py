"""Graphs with sizes that only their data tell: decided without a guard, and without symbols left behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.fx import GraphModule
from torch.library import custom_op

from pytest_reinplace.passes import ReinplacePass, Report, _torch, inductor_options, observe
from pytest_reinplace.passes.graph.sizes import makes_sizes, shape_env_of
from pytest_reinplace.passes.inductor.protect import ProtectPass
from pytest_reinplace.passes.memory._torch import data_symbols
from pytest_reinplace.passes.oracle.setting import Setting

from ..trace import arange, functional, ops

Tensor = torch.Tensor


@custom_op("reinplace_test::doubled_rows", mutates_args=("x",))
def doubled_rows(x: Tensor) -> Tensor:
    """Write a matrix and return some rows of it, as many as its data say."""
    x.mul_(2)
    return x[x[:, 0] > 8].clone()


@doubled_rows.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.shape[1])


@custom_op("reinplace_test::doubled_and_counted", mutates_args=("x",))
def doubled_and_counted(x: Tensor) -> tuple[Tensor, Tensor]:
    """Write a matrix and return its sum and some rows of it."""
    x.mul_(2)
    return x.sum(), x[x[:, 0] > 8].clone()


@doubled_and_counted.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(()), x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.shape[1])


def bounded(t: Tensor) -> int:
    n = t[1].item()
    torch._check(n >= 2)
    torch._check(n <= 4)
    return int(n)


def part_stored(x: Tensor, t: Tensor) -> Any:
    y = x * 2
    y[: bounded(t)] = 5.0
    return y


def from_anywhere(x: Tensor, t: Tensor) -> Any:
    y = x * 2
    y[t[0].item() :].add_(1)  # type: ignore[misc]
    return y


def selected(x: Tensor, t: Tensor) -> Any:
    y = x * 2
    y[t[0].item()] = 7.0  # type: ignore[index]
    return y


def scaled(x: Tensor, t: Tensor) -> Any:
    n = bounded(t)
    ops.scale(x[:n], x[0])
    ops.scale(x[n:, 1:3], x[0])
    return x + 1


def rows_put(x: Tensor, t: Tensor) -> Any:
    live = (x[:, 0] > 6).nonzero().squeeze(1)
    y = x * 1
    y[live] = y[live] * 0.5
    y[live] += x[0]
    return y


def relaid_for_nonzero(x: Tensor, t: Tensor) -> Any:
    return x[:, ::2].index_put((t[:1],), x[0, :2]).nonzero()


def relaid_for_masked_select(x: Tensor, t: Tensor) -> Any:
    y = x * 2
    z = y[:, ::2].index_put((t[:1],), x[0, :2])
    return z.masked_select(z > 3), z


def relaid_for_unique(x: Tensor, t: Tensor) -> Any:
    return x[:, ::2].index_add(0, t[:1], x[:1, :2]).unique()


def unique(x: Tensor, t: Tensor) -> Any:
    u, inverse = torch.unique(t, return_inverse=True)
    x.index_add_(0, u, x[u])
    x[u] = x[u] * 2
    return x.sum(), inverse


def empty(x: Tensor, t: Tensor) -> Any:
    b = torch.empty(bounded(t), 4)
    b.fill_(1.0)
    b[0] = x[0]
    ops.scale(b, x[0])
    return b.t()


def transposed(x: Tensor, t: Tensor) -> Any:
    v = (x[:, : bounded(t)] * 2).contiguous()
    z = v + 1
    ops.scale(v, x[0, 0])
    return z, v


def neutral(x: Tensor, t: Tensor) -> Any:
    """Inductor folds what is multiplied by one: a copy has to keep both results apart."""
    y = x[:, : bounded(t)] * 2 + 1
    return y, y * 1


def of_an_input(x: Tensor, t: Tensor) -> Any:
    z = x[:, : bounded(t)] + 1
    ops.scale(x, x[0, 0])
    return z


def of_a_wrapper(x: Tensor, t: Tensor) -> Any:
    y = x * 2
    y[0] = 20.0
    r = torch.ops.reinplace_test.doubled_rows(y)
    y[1] = 3.0
    return r * 2, y


def of_an_input_that_is_written(x: Tensor, t: Tensor) -> Any:
    return torch.ops.reinplace_test.doubled_rows(x)


def one_of_two(x: Tensor, t: Tensor) -> Any:
    total, rows = torch.ops.reinplace_test.doubled_and_counted(x)
    return rows + 1, total


@custom_op("reinplace_test::doubled_like", mutates_args=("x",))
def doubled_like(x: Tensor, rows: Tensor) -> Tensor:
    """Write a matrix and return one of a size that another operand has."""
    x.mul_(2)
    return rows * 3


@doubled_like.register_fake
def _(x: Tensor, rows: Tensor) -> Tensor:
    return torch.empty_like(rows)


def of_a_size_that_is_given(x: Tensor, t: Tensor) -> Any:
    return torch.ops.reinplace_test.doubled_like(x, (x[:, 0] > 4).nonzero())


def returned(x: Tensor, t: Tensor) -> Any:
    n = bounded(t)
    x[n:].mul_(2)
    return x[n:]


def found_and_marked(x: Tensor, t: Tensor) -> Any:
    found = (x > 6).nonzero()
    found[t] = 3
    return found.t()


PROGRAMS: list[Callable[..., Any]] = [
    *(part_stored, from_anywhere, selected, scaled, rows_put, relaid_for_nonzero, relaid_for_masked_select),
    *(relaid_for_unique, unique, empty, transposed, of_an_input, of_a_wrapper, returned),
    *(of_an_input_that_is_written, one_of_two, of_a_size_that_is_given, found_and_marked, neutral),
]


@pytest.fixture(autouse=True)
def captured() -> Iterator[None]:
    config = torch._dynamo.config
    with config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        torch.compiler.reset()
        yield
        torch.compiler.reset()


def inputs() -> tuple[Tensor, Tensor]:
    return arange(5, 4), torch.tensor([1, 3])


leaves = torch.utils._pytree.tree_leaves


def used(gm: GraphModule) -> set[str]:
    """Return the symbols of data in the values of a graph."""
    values = (leaves(n.meta.get("val")) for n in gm.graph.nodes)
    sizes = [n for value in values for v in value if isinstance(v, Tensor) for n in (*v.shape, *v.stride())]
    return set(map(str, data_symbols(sizes)))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_guard_is_added_and_no_symbol_left(
    program: Callable[..., Any], dynamic: bool, caplog: pytest.LogCaptureFixture
) -> None:
    if dynamic and program in (scaled, returned, part_stored):
        pytest.skip("torch does not trace it")
    gm, _ = functional(program, *inputs(), dynamic=dynamic)
    env = shape_env_of(gm.graph)
    guards, pending, symbols = len(env.guards), list(env.pending_fresh_unbacked_symbols), used(gm)
    with caplog.at_level(logging.WARNING, "pytest_reinplace"):
        ProtectPass()(gm.graph)
        ReinplacePass().apply(gm.graph)
    assert [r.getMessage() for r in caplog.records if r.name.startswith("pytest_reinplace")] == []
    assert [str(g.expr) for g in env.guards[guards:]] == []
    assert env.pending_fresh_unbacked_symbols == pending
    assert used(gm) <= symbols
    gm.graph.lint()


def is_right(program: Callable[..., Any]) -> bool:
    (x, t), (y, _) = inputs(), inputs()
    expected = leaves(program(y, t))
    actual = leaves(torch.compile(program, fullgraph=True, options=inductor_options())(x, t))
    return all(map(torch.equal, (*actual, x), (*expected, y)))


COMPILED = [
    *(transposed, of_an_input, of_a_wrapper, returned, rows_put, unique, neutral),
    *(relaid_for_nonzero, relaid_for_masked_select, relaid_for_unique),
]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", COMPILED)
def test_compiled_programs_are_right(program: Callable[..., Any]) -> None:
    assert is_right(program)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "program", [of_an_input_that_is_written, one_of_two, of_a_wrapper, of_a_size_that_is_given]
)
def test_what_such_an_operator_writes_is_written_in_place(
    program: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[Report] = []
    with (
        observe(lambda report, _: reports.append(report)),
        caplog.at_level(logging.WARNING, "pytest_reinplace"),
    ):
        assert is_right(program)
    assert len(reports) == 1 and reports[0].reinplaced and not reports[0].clones
    assert [r.getMessage() for r in caplog.records if r.name.startswith("pytest_reinplace")] == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", [transposed, of_an_input])
def test_what_is_not_stored_in_time_is_wrong(program: Callable[..., Any]) -> None:
    """The twin: it is returned, and Inductor would store it at once, but for the size that data tell."""
    with Setting(without=("spoiled-by-a-kernel",)).in_force():
        assert not is_right(program)


@pytest.mark.parametrize(
    ("program", "bound"), [(of_an_input_that_is_written, 1), (one_of_two, 1), (of_a_size_that_is_given, 0)]
)
def test_a_call_binds_the_sizes_that_it_makes(program: Callable[..., Any], bound: int) -> None:
    gm, _ = functional(program, *inputs())
    ReinplacePass().apply(gm.graph)
    (call,) = (n for n in gm.graph.nodes if str(n.target).startswith("reinplace_test.doubled"))
    assert len(call.meta.get("unbacked_bindings") or ()) == bound


def test_strides_that_are_the_same_wherever_there_is_an_element() -> None:
    """``nonzero`` has strides (1, n), and fake tensors say (1, Max(1, n)) of what is computed like it."""
    gm, _ = functional(found_and_marked, *inputs())
    assert [o.reinplaced for o in ReinplacePass().apply(gm.graph).outcomes] == [True]


def test_what_asks_for_a_guard_raises_inside() -> None:
    """The twin: outside a guard is added."""
    gm, _ = functional(lambda x: x * 2, arange(5, 4), dynamic=True)
    env = shape_env_of(gm.graph)
    (x,) = (n for n in gm.graph.nodes if n.op == "placeholder" and isinstance(n.meta["val"], Tensor))
    size, guards = x.meta["val"].shape[0], len(env.guards)
    with pytest.raises(RuntimeError, match="guard"), _torch.untouched(env):
        bool(size == 5)
    assert len(env.guards) == guards
    with _torch.untouched(env):
        fresh = env.create_unbacked_symint()
    assert env.pending_fresh_unbacked_symbols == [] and data_symbols([fresh])
    assert bool(size == 5) and len(env.guards) == guards + 1
    fresh = env.create_unbacked_symint()
    assert env.pending_fresh_unbacked_symbols == [fresh.node.expr]


def test_what_makes_sizes_of_its_data_is_known() -> None:
    gm, _ = functional(of_a_wrapper, *inputs())
    made = {str(n.target) for n in gm.graph.nodes if makes_sizes(n)}
    assert any("auto_functionalized" in name for name in made)
    assert not any("mul" in name or "select_scatter" in name for name in made)
