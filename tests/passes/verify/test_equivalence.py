"""assert_equivalent: each way of breaking the contract is found and named, and its harmless twin passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes import ReinplaceError, reinplace
from pytest_reinplace.passes.verify import EquivalenceError, assert_equivalent

from ..trace import functional, ops

Fn = Callable[..., Any]


def graph(fn: Fn, *inputs: Any) -> GraphModule:
    return make_fx(fn)(*(i.clone() for i in inputs))


def check(one: Fn, two: Fn, *inputs: Any, **options: Any) -> None:
    assert_equivalent(graph(one, *inputs), graph(two, *inputs), list(inputs), **options)


def broken(one: Fn, two: Fn, *inputs: Any, kind: str = "output") -> str:
    with pytest.raises(EquivalenceError) as caught:
        check(one, two, *inputs)
    assert caught.value.kind == kind
    assert isinstance(caught.value, AssertionError)  # pytest shows it as a failure, not as an error
    return str(caught.value)


x = torch.arange(6.0).reshape(2, 3)


def test_another_value() -> None:
    def changed(t: torch.Tensor) -> torch.Tensor:
        y = t * 2
        y[1, 2] = 0
        return y

    text = broken(lambda t: t * 2, changed, x)
    assert "1 of 6 elements differ, first at [1, 2]: expected 10.0, got 0.0" in text
    check(lambda t: t * 2, lambda t: t + t, x)


def test_the_first_node_that_differs_is_named() -> None:
    def other(t: torch.Tensor) -> torch.Tensor:
        return (t * 3).neg().sum()

    text = broken(lambda t: (t * 2).neg().sum(), other, x)
    assert "the first node that differs is %mul" in text


def test_values_are_compared_bit_by_bit() -> None:
    nan = torch.tensor([float("nan"), 0.0])
    check(lambda t: t + 0, lambda t: t.clone(), nan)
    assert "elements differ" in broken(lambda t: t.clone(), lambda t: -t, nan)


def test_a_tolerance_is_for_floats_only() -> None:
    check(lambda t: t + 0, lambda t: t + 1e-7, x, atol=1e-6)
    with pytest.raises(EquivalenceError):
        check(lambda t: t + 0, lambda t: t + 1e-3, x, atol=1e-6)
    with pytest.raises(EquivalenceError):
        check(lambda t: t + 0, lambda t: t + 1, torch.arange(4), atol=2.0)


def test_shape_dtype_and_strides() -> None:
    assert "shape" in broken(lambda t: t + 0, lambda t: (t + 0).view(3, 2), x)
    assert "dtype" in broken(lambda t: t + 0, lambda t: (t + 0).double(), x)
    text = broken(lambda t: t + 0, lambda t: (t + 0).t().contiguous().t(), x)
    assert "expected strides (3, 1), got (1, 2)" in text


def test_strides_of_single_elements_mean_nothing() -> None:
    def strided(t: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided((1, 3), (7, 1)).copy_(t)

    check(lambda t: t.clone(), strided, torch.ones(1, 3))


def test_the_number_of_outputs_and_what_is_no_tensor() -> None:
    assert "expected 2 outputs, got 1" in broken(lambda t: (t + 1, t + 2), lambda t: (t + 1,), x)
    same = graph(lambda t: (t + 1, None, 3), x)
    assert_equivalent(same, same, [x])
    assert "expected 3, got 4" in broken(lambda t: (t + 1, 3), lambda t: (t + 1, 4), x)


def test_an_input_that_is_written() -> None:
    text = broken(lambda t: t * 2, lambda t: t.mul_(2).clone(), x, kind="input")
    assert text.startswith("input 0 (") and "ends with other values" in text
    check(lambda t: t.mul_(2).clone(), lambda t: t.copy_(t * 2).clone(), x)


def test_bytes_beside_an_input_that_are_written() -> None:
    part = torch.arange(1.0, 9.0)[2:6]

    def beside(t: torch.Tensor) -> torch.Tensor:
        t.as_strided([1], [1], 0).zero_()
        return t + 1

    with pytest.raises(EquivalenceError) as caught:
        assert_equivalent(lambda t: t + 1, beside, [part])
    assert caught.value.kind == "input"
    assert "input 0: bytes of its storage outside the input were written" in str(caught.value)
    assert part[0] == 3  # and nothing that was given is touched


def test_inputs_that_share_storage_share_it_in_both_runs() -> None:
    whole = torch.arange(8.0)

    def write(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        one.add_(1)
        return two.clone()

    assert_equivalent(write, write, [whole, whole[2:4]])
    with pytest.raises(EquivalenceError, match="output 0: 2 of 2 elements differ"):
        assert_equivalent(write, lambda a, b: write(a, b.clone()), [whole, whole[2:4]])


def test_an_alias_that_is_new() -> None:
    text = broken(lambda t: t.clone(), lambda t: t.view(2, 3), x, kind="alias")
    assert "shares storage with input 0" in text and "it does not" in text

    def twice(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = t + 1
        return y, y.view(3, 2)

    apart = broken(lambda t: (t + 1, (t + 1).view(3, 2)), twice, x, kind="alias")
    assert "output 1" in apart and "output 0" in apart
    check(twice, twice, x)


def test_an_alias_that_is_lost() -> None:
    text = broken(lambda t: t.view(3, 2), lambda t: t.view(3, 2).clone(), x, kind="alias")
    assert "no longer shares storage with input 0" in text


def test_an_alias_at_another_place() -> None:
    ones = torch.ones(6)
    text = broken(lambda t: t[:2], lambda t: t[2:4], ones, kind="alias")
    assert "begins 8 bytes after input 0" in text
    check(lambda t: t[2:4], lambda t: t[1:][1:3], ones)


def test_a_graph_that_raises() -> None:
    bad = graph(lambda t: t.view(6), x)
    for node in bad.graph.nodes:
        if node.op == "call_function":
            node.args = (node.args[0], [7])
    with pytest.raises(EquivalenceError, match=r"the rewritten graph raises at %view") as caught:
        assert_equivalent(graph(lambda t: t.view(6), x), bad, [x])
    assert caught.value.kind == "error"


def test_buffers_of_the_module_are_copied_and_compared() -> None:
    class Counter(torch.nn.Module):
        def __init__(self, step: int) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))
            self.step = step

        def forward(self, t: torch.Tensor) -> torch.Tensor:
            self.count.add_(t.sum() * self.step)
            return t + 1

    modules = [torch.fx.symbolic_trace(Counter(step)) for step in (1, 1, 2)]
    assert_equivalent(modules[0], modules[1], [x])
    with pytest.raises(EquivalenceError, match="buffer count ends with other values"):
        assert_equivalent(modules[0], modules[2], [x])
    assert modules[0].count.tolist() == [0.0, 0.0]


def test_random_operators_draw_the_same() -> None:
    one, two = graph(lambda t: t + torch.rand(3), x), graph(lambda t: torch.rand(3) + t, x)
    before = torch.get_rng_state()
    assert_equivalent(one, two, [x])
    assert torch.equal(torch.get_rng_state(), before)


def test_memory_that_was_never_written_is_the_same_in_both_runs() -> None:
    check(lambda t: torch.empty(64) + 0, lambda t: torch.empty(64).clone(), x)


def test_wrappers_clone_only_what_inductor_decided() -> None:
    def update(t: torch.Tensor, by: torch.Tensor) -> None:
        ops.scale(t, by)

    gm, inputs = functional(update, x.clone(), torch.ones(2, 3))
    wrong, _ = functional(update, x.clone(), torch.ones(2, 3))
    for node in wrong.graph.nodes:
        if node.target is torch.ops.aten.copy_.default:
            wrong.graph.erase_node(node)
    with pytest.raises(EquivalenceError):
        assert_equivalent(gm, wrong, inputs)
    for node in wrong.graph.nodes:
        node.meta["only_clone_these_tensors"] = []
    assert_equivalent(gm, wrong, inputs)  # now the operator writes into the input itself


@pytest.mark.parametrize("v2", [False, True])
def test_the_pass_on_a_traced_program(v2: bool) -> None:
    def update(t: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        ops.scale(t[1:], by)
        return t.sum()

    gm, inputs = functional(update, x.clone(), torch.ones(1, 3), v2=v2)
    rewritten, _ = functional(update, x.clone(), torch.ones(1, 3), v2=v2)
    assert reinplace(rewritten).clones == []
    assert_equivalent(gm, rewritten, inputs)


def test_compiled_functions_are_compared_too() -> None:
    compiled = torch.compile(lambda t: t.sin() + 1, backend="aot_eager")
    assert_equivalent(lambda t: t.sin() + 1, compiled, [x])
    with pytest.raises(EquivalenceError):
        assert_equivalent(lambda t: t.sin() + 2, compiled, [x])


def test_inputs_that_cannot_be_run_on() -> None:
    gm = graph(lambda t: t + 1, x)
    with pytest.raises(
        ReinplaceError, match="expected real tensors as example inputs, got a Tensor of shape"
    ):
        assert_equivalent(gm, gm, [torch.empty(2, 3, device="meta")])
    with pytest.raises(ReinplaceError, match="expected one example input per placeholder"):
        assert_equivalent(gm, gm, [])
