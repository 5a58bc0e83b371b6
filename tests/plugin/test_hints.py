"""Each hint is followed: a program that gets it, changed as it says, has no clone and computes the same."""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.passes import Outcome, Reason, declare, inductor_options, reinplace
from pytest_reinplace.passes.reason import LIST, listing

aten = torch.ops.aten
KEEP_ORDER = {"reorder_for_locality": False}
OUR_PASS = Reason.MISSED.hint.partition(": ")[2]
BOTH = "the old value and the new one are both needed: if that is meant, "


def _register() -> None:
    if hasattr(torch.ops.hinttest, "scale_"):
        return

    @torch.library.custom_op("hinttest::scale_", mutates_args={"x"})
    def scale_(x: torch.Tensor, by: torch.Tensor) -> None:
        x.copy_(x * by)

    @torch.library.custom_op("hinttest::both_", mutates_args={"x", "y"})
    def both_(x: torch.Tensor, y: torch.Tensor) -> None:
        x.mul_(2)
        y.add_(1)

    @torch.library.custom_op("hinttest::total", mutates_args=())
    def total(x: torch.Tensor) -> torch.Tensor:
        return x.sum()

    @total.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return x.new_empty(())


_register()
scale_, both_, total = torch.ops.hinttest.scale_, torch.ops.hinttest.both_, torch.ops.hinttest.total
library = torch.library.Library("hinttest", "FRAGMENT")
library.define("first_row(Tensor x) -> Tensor")
library.impl("first_row", lambda x: x[0], "CompositeExplicitAutograd")
library.define("copied_row(Tensor x) -> Tensor")
library.impl("copied_row", lambda x: x[0].clone(), "CompositeExplicitAutograd")


@dataclasses.dataclass(frozen=True)
class Ran:
    """What a compiled program did.

    Args:
        clones: what was cloned.
        result: what it returned.
        inputs: its inputs afterwards.
    """

    clones: tuple[Outcome, ...]
    result: Any
    inputs: tuple[Any, ...]


def ran(program: Callable[..., Any], inputs: tuple[Any, ...], under_test: str, **options: Any) -> Ran:
    """Compile a program, run it, and hold it against eager."""
    torch._dynamo.reset()
    mine, eagers = copy.deepcopy(inputs), copy.deepcopy(inputs)
    with Capture(under_test, "graph", asker="marked test") as capture:
        result = torch.compile(program, **options)(*mine)
    assert not any(graph.problem or graph.suspicious for graph in capture.graphs)
    torch.testing.assert_close((result, mine), (program(*eagers), eagers))
    return Ran(tuple(o for o in capture.report.outcomes if not o.reinplaced), result, mine)


def follow(
    program: Callable[..., Any],
    changed: Callable[..., Any],
    inputs: tuple[Any, ...],
    hint: str,
    under_test: str,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    same_inputs: bool = True,
) -> None:
    """Hold that a program has a clone with this hint, and the changed one none and the same results."""
    first = ran(program, inputs, under_test, **(before or {}))
    assert hint in [o.hint for o in first.clones]
    second = ran(changed, inputs, under_test, **(after or {}))
    assert second.clones == ()
    torch.testing.assert_close(second.result, first.result)
    if same_inputs:
        torch.testing.assert_close(second.inputs, first.inputs)


def expected(hint: str) -> list[str]:
    """Return the list that a hint says to paste."""
    _, found, line = hint.partition(LIST)
    assert found, hint
    return eval(compile(ast.parse(line, mode="eval"), "hint", "eval"), {"__builtins__": {}})


def meant(program: Callable[..., Any], inputs: tuple[Any, ...], says: str, under_test: str) -> None:
    """Hold that a clone is told as needed, and that the line to paste is what assert_clones wants."""
    clones = ran(program, inputs, under_test).clones
    hints = [o.hint for o in clones if LIST in o.hint]
    assert hints and all(hint.startswith(says) for hint in hints)
    for hint in hints:
        assert sorted(expected(hint)) == sorted(o.label for o in clones)


ones = torch.ones
EIGHT = ones(8), torch.arange(8.0)
SQUARE = (torch.arange(16.0).reshape(4, 4),)
PLACE = torch.tensor([1])


def read_after(x, by):
    y = x * 2
    z = y.clone()
    scale_(z, by)
    return z, total(y)


def read_before(x, by):
    y = x * 2
    old = total(y)
    z = y.clone()
    scale_(z, by)
    return z, old


def copied_for_later(cache, by):
    before = cache.clone()
    scale_(cache, by)
    return total(before)


def used_at_once(cache, by):
    before = total(cache)
    scale_(cache, by)
    return before


def summed_before(x, by):
    y = x * 2
    old = y.sum()
    scale_(y, by)
    return y, old


@pytest.mark.parametrize("under_test", ["inductor", "exact"])
@pytest.mark.parametrize(("program", "changed"), [(read_after, read_before), (read_before, read_before)])
def test_read_the_old_value_before_the_write(program: Any, changed: Any, under_test: str) -> None:
    hint = Reason.STILL_READ.hint
    follow(program, changed, EIGHT, hint, under_test, after={"options": KEEP_ORDER})


def test_use_a_copy_before_its_source_is_overwritten() -> None:
    hint, after = Reason.OVERWRITTEN.hint, {"options": KEEP_ORDER}
    follow(copied_for_later, used_at_once, EIGHT, hint, "exact", after=after)


def our_pass_without_copies(program: Callable[..., Any], inputs: tuple[Any, ...], hint: str) -> None:
    """Hold both ways that a hint names: our pass under test, and in what the user compiles."""
    assert hint in [o.hint for o in ran(program, inputs, "inductor").clones]
    assert ran(program, inputs, "exact").clones == ()
    assert ran(program, inputs, "inductor", options=inductor_options()).clones == ()


def test_our_pass_reads_before_the_write() -> None:
    our_pass_without_copies(summed_before, EIGHT, f"our pass reads it before the write: {OUR_PASS}")


def test_our_pass_does_not_miss_it() -> None:
    def project(x, row):
        y = x @ x
        y[0] = row
        return y

    our_pass_without_copies(project, (*SQUARE, ones(4)), Reason.MISSED.hint)


def test_our_pass_copies_less() -> None:
    inputs = (*SQUARE, ones(4, 4) * 2)

    def both(cache, by):
        before = cache.clone()
        scale_(cache, by)
        return before @ cache

    write, back = ran(both, inputs, "inductor").clones
    assert write.hint == f"our pass copies 64 B, for aten::mm, instead of 128 B: {OUR_PASS}"
    assert back.hint == f"follows from the clone of hinttest::scale_.x at {write.source}"
    assert write.nbytes + back.nbytes == 128
    for ours in (ran(both, inputs, "exact"), ran(both, inputs, "inductor", options=inductor_options())):
        assert sum(o.nbytes for o in ours.clones) == 64
    assert write.source is not None and "test_hints.py:" in write.source


def second_buffer(x):
    y = x.clone()
    scale_(y, y)
    return y @ x.T


def second_buffer_of_a_temporary(x):
    x = x @ x
    y = x.clone()
    y[PLACE] = 1.0
    return y @ x.T


def both_returned(x):
    y = x @ x
    return y, y.index_put((PLACE,), ones(1, 4))


def three_buffers(x):
    y, z = x.clone(), x.clone()
    scale_(y, x)
    scale_(z, x)
    return (y @ x.T) + (z @ x.T)


@pytest.mark.parametrize(
    "program", [second_buffer, second_buffer_of_a_temporary, both_returned, three_buffers]
)
def test_a_copy_that_both_values_need_is_told_as_meant(program: Any) -> None:
    meant(program, SQUARE, BOTH, "inductor")


@pytest.mark.parametrize("program", [second_buffer, second_buffer_of_a_temporary, three_buffers])
def test_a_copy_that_the_program_makes_itself_is_told_as_meant(program: Any) -> None:
    meant(program, SQUARE, "the program copies it here and needs both: if that is meant, ", "exact")


def put(cache, value):
    return cache.index_put((PLACE,), value)


def put_back(cache, value):
    return cache.index_put_((PLACE,), value)


@pytest.mark.parametrize("under_test", ["inductor", "exact"])
def test_write_the_result_back_or_list_the_copy(under_test: str) -> None:
    inputs = torch.zeros(8), ones(1)
    says = f"{Reason.INPUT_KEPT.hint}; if the caller needs the old value, "
    hint = says + listing(["aten::index_put.self"])
    follow(put, put_back, inputs, hint, under_test, same_inputs=False)
    meant(put, inputs, says, under_test)


def scaled_by_an_equal(x, weight):
    y, by = x + 1, x + 1
    scale_(y, by)
    return y * weight


def two_equals_written(x, weight):
    y, z = x + 1, x + 1
    both_(y, z)
    return z * weight


def test_declare_an_elementwise_operator() -> None:
    inputs = ones(8), ones(8, requires_grad=True)
    says = f"{Reason.SAME_NODE.hint}; if not, "
    meant(scaled_by_an_equal, inputs, says, "exact")
    with declare(scale_.default, elementwise=True):
        assert ran(scaled_by_an_equal, inputs, "exact").clones == ()


def put_rows_of_itself(x):
    y = x @ x
    return y.index_put((torch.arange(4),), y) @ x


@pytest.mark.parametrize(
    ("program", "inputs"),
    [(two_equals_written, (ones(8), ones(8, requires_grad=True))), (put_rows_of_itself, SQUARE)],
)
def test_a_call_that_needs_the_old_value_is_told_so(program: Any, inputs: Any) -> None:
    meant(program, inputs, "the call needs the old value while it writes: if that is meant, ", "exact")


def test_a_result_that_is_returned_although_its_input_is_written_again() -> None:
    def swap(cache, new, value):
        old = cache.index_put((PLACE,), value)
        cache.copy_(new)
        return old

    says = "the result is returned, and the input is written again: if that is meant, "
    meant(swap, (torch.zeros(8), ones(8), ones(1)), says, "exact")


def test_use_the_result_before_the_input_is_written_again() -> None:
    def late(cache, new, place, value):
        result = aten.index_put.default(cache, [place], value)
        cache.copy_(new)
        return total(result)

    def early(cache, new, place, value):
        result = total(aten.index_put.default(cache, [place], value))
        cache.copy_(new)
        return result

    found = []
    for program in (late, early):
        inputs = torch.zeros(8), ones(8), PLACE, ones(1)
        gm = make_fx(program, tracing_mode="fake")(*inputs)
        found.append([o.hint for o in reinplace(gm).outcomes if not o.reinplaced])
        gm.recompile()
        torch.testing.assert_close(gm(*copy.deepcopy(inputs)), program(*copy.deepcopy(inputs)))
    assert found == [[Reason.CLOBBERED.hint], []]


def test_return_the_tensor_itself_or_list_the_copy() -> None:
    def step(cache, by):
        scale_(cache, by)
        return cache.clone()

    def changed(cache, by):
        scale_(cache, by)
        return cache

    says = f"{Reason.ESCAPES.hint}; if one is meant, "
    follow(step, changed, EIGHT, says + listing(["aten::clone.self"]), "exact")
    meant(step, EIGHT, says, "exact")


def test_make_the_operand_contiguous() -> None:
    def column(x, value):
        return (x @ x)[:, 0].index_put((PLACE,), value)

    def contiguous(x, value):
        return (x @ x)[:, 0].contiguous().index_put((PLACE,), value)

    follow(column, contiguous, (*SQUARE, ones(1)), Reason.LAYOUT.hint, "exact")


def test_write_into_what_was_not_expanded() -> None:
    def table(x, rows):
        return (x * 2).expand(4, 4).index_put((PLACE,), rows) + 1

    def repeated(x, rows):
        return (x * 2).repeat(4, 1).index_put((PLACE,), rows) + 1

    follow(table, repeated, (ones(4), ones(1, 4)), Reason.SELF_OVERLAP.hint, "exact")


def sliced(cache, by, rest):
    kept, more = cache[rest.shape[0] :].clone(), cache[rest.shape[0] + 1 :].clone()
    scale_(cache[: by.shape[0]], by)
    return total(kept) + total(more)


def sliced_at_constants(cache, by, rest):
    kept, more = cache[3:].clone(), cache[4:].clone()
    scale_(cache[:2], by)
    return total(kept) + total(more)


@pytest.mark.parametrize("changed", [sliced_at_constants, None])
def test_static_sizes(changed: Any) -> None:
    inputs = ones(8), ones(2) * 3, ones(3)
    hint, dynamic = Reason.UNKNOWN_OVERLAP.hint, {"dynamic": True}
    if changed is not None:
        follow(sliced, changed, inputs, hint, "exact", dynamic, dynamic)
        return
    first = ran(sliced, inputs, "exact", dynamic=True)
    assert {o.hint for o in first.clones} == {hint, *(o.consequence for o in first.clones[:1])}
    torch._dynamo.reset()
    given = copy.deepcopy(inputs)
    for tensor in given:
        torch._dynamo.mark_static(tensor, 0)
    with Capture("exact", "graph") as capture:
        result = torch.compile(sliced, dynamic=True)(*given)
    assert capture.report.clones == [] and capture.report.reinplaced
    torch.testing.assert_close(result, first.result)


@pytest.fixture
def views_allowed() -> Iterator[None]:
    """Let an operator return a view, which is an error where CI is set."""
    import torch._functorch.config as config

    with config.patch(error_on_custom_op_aliasing=False):
        yield


@pytest.mark.usefixtures("views_allowed")
def test_return_memory_of_its_own() -> None:
    def step(x, by):
        first = torch.ops.hinttest.first_row(x).sum()
        scale_(x, by)
        return first

    def changed(x, by):
        first = torch.ops.hinttest.copied_row(x).sum()
        scale_(x, by)
        return first

    follow(step, changed, (*SQUARE, ones(4, 4) * 2), Reason.UNKNOWN_OP.hint, "exact")


def test_what_inductor_would_store_elsewhere_has_no_hint() -> None:
    def masked(x, mask):
        y = x @ x
        y[0] = 1
        y[mask] = 2.0
        return y @ x

    (clone,) = ran(masked, (*SQUARE, torch.eye(4) > 0), "exact").clones
    assert (clone.reason, clone.hint) == (Reason.LOWERING, "")


def test_view_dtypes_outside() -> None:
    def poke(x):
        x.view(torch.int32)[0, 0] = 16256
        return x * 1

    def poke_bits(bits):
        bits[0, 0] = 16256
        return bits * 1

    x = ones(4, 4)
    first = ran(poke, (x,), "exact")
    assert Reason.LOWERING.hint in [o.hint for o in first.clones]
    second = ran(poke_bits, (x.view(torch.int32),), "exact")
    assert second.clones == ()
    torch.testing.assert_close(second.inputs[0].view(torch.float32), first.inputs[0])


@contextlib.contextmanager
def gloo() -> Iterator[str]:
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield dist.group.WORLD.group_name  # type: ignore[union-attr]
    finally:
        dist.destroy_process_group()


def test_wait_before_the_write() -> None:
    def gather(x, by):
        started = torch.ops._c10d_functional.all_gather_into_tensor(x, 1, group)
        scale_(x, by)
        return torch.ops._c10d_functional.wait_tensor(started)

    def waiting(x, by):
        started = torch.ops._c10d_functional.all_gather_into_tensor(x, 1, group)
        gathered = torch.ops._c10d_functional.wait_tensor(started)
        scale_(x, by)
        return gathered

    with gloo() as group:
        torch._dynamo.reset()
        with Capture("exact", "graph") as capture:  # eager, it races: what it gathers is not compared
            torch.compile(gather)(*copy.deepcopy(EIGHT))
        write, back = (o for o in capture.report.outcomes if not o.reinplaced)
        assert (write.hint, back.hint) == (Reason.IN_FLIGHT.hint, write.consequence)
        second = ran(waiting, EIGHT, "exact")
    assert second.clones == ()
    torch.testing.assert_close(second.result, EIGHT[0])


def test_a_listed_clone_that_is_there_several_times() -> None:
    assert expected("x: " + listing(["b", "a", "b"])) == ["a", "b", "b"]
    assert expected("x: " + listing(["a"])) == ["a"]
