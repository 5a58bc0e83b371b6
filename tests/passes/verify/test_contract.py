"""A compiled graph held against its functional graph: what is found, what is none, what is not checked."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import custom_op

from pytest_reinplace.passes import _torch, reinplace
from pytest_reinplace.passes.verify import Finding, check, copied

from ..trace import functional

Tensor = torch.Tensor
aten = torch.ops.aten


def graph(fn: Callable[..., Any], *args: Any) -> GraphModule:
    return make_fx(fn, tracing_mode="fake")(*args)


def held(before: Callable[..., Any], after: Callable[..., Any], *args: Any) -> Finding:
    """Check the graphs of two programs against each other."""
    return check(graph(before, *args), graph(after, *args), args)


def ones() -> Tensor:
    return torch.arange(1.0, 9.0)


# -- what breaks the contract, and its twin ---------------------------------------------------------


def returns(x: Tensor) -> Any:
    return x * 2, x + 1


def test_the_same_is_the_same() -> None:
    assert held(returns, returns, ones()) == Finding("same")


def test_a_value() -> None:
    found = held(returns, lambda x: (x * 2, x + 2), ones())
    assert (found.status, found.kind) == ("different", "output")
    assert found.text.startswith(
        "output 1 (add): 8 of 8 elements differ, first at [0]: expected 2.0, got 3.0"
    )
    assert found.node == "add (aten::add)"


def test_an_input_that_is_written() -> None:
    found = held(lambda x: x.clone(), lambda x: (x.add_(0), x.clone() - 0, x.mul_(2))[1], ones())
    assert (found.status, found.kind) == ("different", "input")


def test_a_difference_of_one_bit_counts_where_both_run_the_same_operators() -> None:
    close = held(lambda x: x * 2, lambda x: x * 2.0000002, ones())
    assert close.is_different
    assert held(lambda x: x * 2, lambda x: x * 2.0, ones()).status == "same"


def test_an_alias_that_is_new_or_gone() -> None:
    new = held(lambda x: x.clone(), lambda x: x.view(8), ones())
    assert (new.kind, new.text) == (
        "alias",
        "output 0 (clone) shares storage with input 0 (x_1); in the functional graph it does not",
    )
    assert held(lambda x: x.view(8), lambda x: x.clone(), ones()).kind == "alias"
    assert held(lambda x: x.view(8), lambda x: x.view(-1), ones()).status == "same"


def test_what_the_caller_makes_anew_may_share_storage_but_not_have_other_values() -> None:
    x = ones()
    before, after = graph(lambda x: x.clone(), x), graph(lambda x: x.view(8), x)
    assert check(before, after, [x], regenerated=frozenset({0})).status == "same"
    other = graph(lambda x: x.view(8) + 1, x)
    assert check(before, other, [x], regenerated=frozenset({0})).is_different


def test_inputs_that_share_storage_do_so_in_the_copies() -> None:
    def before(x: Tensor, y: Tensor) -> Tensor:
        old = y.clone()
        x.mul_(2)
        return old

    def after(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        return y.clone()

    base = torch.arange(8.0)
    assert held(before, after, base[:6], base[2:]).is_different
    assert held(before, after, torch.ones(6), torch.ones(6)).status == "same"


def test_a_write_over_what_is_read() -> None:
    def before(x: Tensor) -> None:
        x[1:].copy_(x[:-1].clone())

    def after(x: Tensor) -> None:
        x[1:].copy_(x[:-1])

    found = held(before, after, ones())
    assert found.is_different and found.text.startswith(
        "the rewritten graph writes into what it reads: copy_"
    )
    assert held(before, before, ones()).status == "same"


# -- what a compiler is free to do -------------------------------------------------------------------


def test_strides_of_an_output_count_where_it_shares_storage() -> None:
    x = torch.arange(6.0).view(2, 3)
    assert held(lambda x: x.t() + 1, lambda x: (x + 1).t().contiguous(), x).status == "same"
    assert held(lambda x: x.t(), lambda x: x.as_strided((3, 2), (2, 1)), x).is_different


def test_rounding_is_allowed_where_other_operators_compute_the_same() -> None:
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))

    def two(x: Tensor) -> Tensor:
        return torch.mm(x, x) + x

    assert held(two, lambda x: torch.addmm(x, x, x), x).status == "same"
    assert held(two, lambda x: torch.addmm(x, x, x, alpha=1.01), x).is_different
    half = x.bfloat16()
    assert held(two, lambda x: torch.addmm(x, x, x), half).status == "same"


def test_what_is_taken_away_has_to_change_nothing() -> None:
    x = torch.tensor([-0.0, 1.0])
    gm, _ = functional(lambda x: (x + 0.0).signbit(), x)
    after = functional(lambda x: x.signbit(), x)[0]
    assert check(gm, after, [x]).is_different
    assert check(gm, after, [x.abs()]).status == "same"
    half, once = (functional(fn, x)[0] for fn in (lambda x: x.half().float() * 2, lambda x: x * 2))
    third = torch.tensor([1 / 3, 2.0])
    assert check(half, once, [third]).status == "same"  # rounded once less
    summed = functional(lambda x: x.double().add(0.0).sum(), x)[0]
    assert check(summed, functional(lambda x: x.double().sum(), x)[0], [third]).status == "same"


def test_integers_that_rounding_decides_are_not_checked() -> None:
    x = torch.tensor([1.0, 1.0])
    found = held(lambda x: x.mul(3).argmax(), lambda x: x.add(torch.tensor([0.0, 1e-6])).argmax(), x)
    assert (found.status, found.text) == (
        "not-checked",
        "integers differ, and the passes changed the arithmetic that decides them",
    )
    assert held(lambda x: x.mul(3).argmax(), lambda x: x.mul(-3).add(1)[1:].argmax() + 1, x).status != "same"


def test_one_nan_is_like_another() -> None:
    x = torch.tensor([float("nan"), 1.0])
    assert held(lambda x: x + 1, lambda x: x + 1, x).status == "same"
    assert held(lambda x: x + 1, lambda x: -(-x - 1), x).status == "same"
    assert held(lambda x: x + 1, lambda x: x.nan_to_num() + 1, x).is_different


def test_a_buffer_that_only_one_graph_takes_is_no_difference() -> None:
    def before(x: Tensor) -> Tensor:
        return x[torch.tensor([1, 0])]

    assert held(before, lambda x: x[:2].flip(0), ones()).status == "same"


def test_a_value_that_the_compiler_lays_out_as_it_says_it_does() -> None:
    """A clone of what has gaps is dense when it is run, and has the gaps in the compiled program."""
    x = torch.arange(16.0).view(4, 4)
    before = graph(lambda x: (x[:, :2] + 1).clone().sum(), x)
    after = graph(lambda x: torch.empty_strided((4, 2), (2, 1)).copy_(x[:, :2] + 1).sum(), x)
    copy = after.graph.find_nodes(op="call_function", target=aten.add.Tensor)[0]
    with copy.meta["val"].fake_mode:
        copy.meta["val"] = torch.empty_strided((4, 2), (1, 4))
    with after.graph.inserting_after(copy):
        skewed = after.graph.call_function(aten.as_strided.default, (copy, [4, 2], [1, 4], 0))
        skewed.meta["val"] = copy.meta["val"]
    copy.replace_all_uses_with(skewed, delete_user_cb=lambda user: user is not skewed)
    after.recompile()
    assert check(before, after, [x]).status == "same"
    copy.meta["val"] = before.graph.find_nodes(op="call_function", target=aten.add.Tensor)[0].meta["val"]
    with after.graph.inserting_after(skewed):
        other = after.graph.call_function(aten.as_strided.default, (copy, [4, 2], [1, 1], 0))
    skewed.replace_all_uses_with(other)
    after.recompile()
    assert check(before, after, [x]).is_different


# -- random numbers ----------------------------------------------------------------------------------


def test_random_nodes_may_run_in_another_order() -> None:
    x = ones()
    before = graph(lambda x: (torch.rand(8) + x, torch.randn(8) * x), x)
    after = graph(lambda x: (torch.rand(8) + x, torch.randn(8) * x), x)
    later = after.graph.find_nodes(op="call_function", target=aten.rand.default)[0]
    drawn = after.graph.find_nodes(op="call_function", target=aten.randn.default)[0]
    later.prepend(drawn)
    after.recompile()
    assert check(before, after, [x]).status == "same"


def test_two_random_nodes_made_one_are_found() -> None:
    x = ones()
    before = graph(lambda x: (torch.rand(8) + x) / torch.rand(8), x)
    after = graph(lambda x: (torch.rand(8) + x) / torch.rand(8), x)
    one, two = after.graph.find_nodes(op="call_function", target=aten.rand.default)
    two.replace_all_uses_with(one)
    after.graph.erase_node(two)
    after.recompile()
    assert check(before, after, [x]).is_different


def test_a_new_random_node_is_not_checked() -> None:
    found = held(lambda x: x + 1, lambda x: x + torch.rand(8), ones())
    assert (found.status, found.text) == ("not-checked", "the passes made other random nodes: rand")


def test_numbers_drawn_into_a_buffer_are_those_that_were_drawn_apart() -> None:
    """Traced without decompositions: torch 2.15 has one for uniform numbers."""

    def draw(x: torch.Tensor) -> torch.Tensor:
        return aten.bernoulli.p(torch.empty(8), 0.5) + x * aten.uniform.default(torch.empty(8))

    inputs = [ones()]
    before = graph(draw, *inputs)
    after = copied(before)
    reinplace(after)
    assert {str(node.target) for node in after.graph.nodes} >= {
        "aten.bernoulli_.float",
        "aten.uniform_.default",
    }
    assert check(before, after, inputs).status == "same"
    drawn = next(node for node in after.graph.nodes if str(node.target) == "aten.uniform_.default")
    drawn.args = (drawn.args[0], 0.5)
    after.recompile()
    assert check(before, after, inputs).is_different


def test_what_a_users_operator_draws_is_the_same_on_both_sides() -> None:
    x = ones()
    before = graph(lambda x: torch.ops.contract_test.noise(x.clone()) + torch.rand(8), x)
    assert (
        check(before, graph(lambda x: torch.ops.contract_test.noise(x) + torch.rand(8), x), [x]).status
        == "same"
    )


def test_nothing_that_the_caller_has_is_changed() -> None:
    x, y = ones().requires_grad_(), ones()
    x.grad = ones()
    states = torch.random.get_rng_state(), random.getstate(), numpy.random.get_state()[1].tolist()
    before = graph(lambda x, y: (torch.ops.contract_test.noise(x.detach()), y.add_(1))[0], x, y)
    assert check(before, before, [x, y]).status == "same"
    assert torch.equal(y, ones()) and torch.equal(x.grad, ones()) and x.requires_grad
    assert torch.equal(states[0], torch.random.get_rng_state())
    assert states[1:] == (random.getstate(), numpy.random.get_state()[1].tolist())


def test_autocast_and_dispatch_modes_of_the_caller_do_not_reach_the_graphs() -> None:
    x = torch.randn(4, 4)
    seen: list[Any] = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, fn: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(fn)
            return fn(*args, **(kwargs or {}))

    before, after = graph(lambda x: x @ x, x), graph(lambda x: x @ x, x)
    with torch.autocast("cpu", torch.bfloat16), Mode():
        assert check(before, after, [x]).status == "same"
    assert seen == []


# -- sizes ---------------------------------------------------------------------------------------------


def test_symbolic_sizes_are_those_of_the_call() -> None:
    gm, inputs = functional(lambda x: x.new_zeros(x.shape[0] * 2) + x.sum(), torch.arange(6.0), dynamic=True)
    symbol = next(n.meta["val"] for n in gm.graph.nodes if isinstance(n.meta.get("val"), torch.SymInt))
    full = next(n for n in gm.graph.nodes if n.target is aten.full.default)
    full.args = ([symbol * 2], *full.args[1:])  # as some of Inductor's passes leave it
    gm.recompile()
    assert check(gm, gm, inputs).status == "same"
    assert next(n for n in gm.graph.nodes if n.target is aten.full.default).args[0] == [symbol * 2]


def test_a_size_that_nothing_tells_is_not_checked() -> None:
    gm, inputs = functional(lambda x: x.new_zeros(x.shape[0]), torch.arange(6.0), dynamic=True)
    full = next(n for n in gm.graph.nodes if n.target is aten.full.default)
    full.args = ([full.meta["val"].fake_mode.shape_env.create_unbacked_symint()], *full.args[1:])
    found = check(gm, gm, inputs)
    assert found.status == "not-checked" and "depends on data, and no node computes it" in found.text


def test_sizes_that_depend_on_data_are_computed() -> None:
    gm = make_fx(lambda x: x.nonzero() * 2, tracing_mode="symbolic")(torch.tensor([0, 1, 2]))
    assert check(gm, gm, [torch.tensor([1, 1, 0, 1])]).status == "same"


# -- what is not checked -------------------------------------------------------------------------------


@custom_op("contract_test::noise", mutates_args=())
def noise(x: Tensor) -> Tensor:
    random.random()
    return x + torch.rand(8) + numpy.random.rand()


@noise.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@custom_op("contract_test::effect", mutates_args=())
def effect(x: Tensor) -> Tensor:
    return x.clone()


@effect.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


_calls: list[int] = []


@custom_op("contract_test::counting", mutates_args=())
def counting(x: Tensor) -> Tensor:
    _calls.append(1)
    return x + len(_calls)


@counting.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def plain() -> GraphModule:
    return graph(lambda x: x + 1, ones())


def refused(gm: GraphModule, value: Any) -> str:
    found = check(gm, gm, [value])
    assert found.status == "not-checked"
    return found.text


def test_inputs_that_cannot_be_copied() -> None:
    assert refused(plain(), torch.Generator()) == "input 0 is no tensor or number, but Generator"
    assert refused(plain(), torch.eye(8).to_sparse()) == "input 0 is of layout torch.sparse_coo"

    class Sub(torch.Tensor):
        pass

    assert refused(plain(), ones().as_subclass(Sub)) == "input 0 is a subclass of Tensor, Sub"
    assert "expected real tensors" in refused(plain(), torch.empty(8, device="meta"))


def test_effects() -> None:
    handle = _register_effectful_op("contract_test::effect", _EffectType.ORDERED)
    try:
        gm = graph(lambda x: x + 1, ones())
        node = gm.graph.find_nodes(op="call_function", target=aten.add.Tensor)[0]
        node.target, node.args = torch.ops.contract_test.effect.default, node.args[:1]
        assert refused(gm, ones()) == "add is an effect: contract_test::effect"
        node.target, node.args = _torch.hop("with_effects"), (None, torch.ops.contract_test.effect.default)
        text = "add is an effect, whose order is all that it shows: contract_test::effect"
        assert refused(gm, ones()) == text
    finally:
        handle.destroy()


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (aten._print.default, "printing: aten::_print"),
        (aten.set_.source_Tensor, "a tensor that is given another storage: aten::set_"),
        (torch.ops.inductor.resize_storage_bytes_.default, "a storage that is resized"),
    ],
)
def test_operators_that_do_more_than_tensors_show(target: Any, words: str) -> None:
    gm = plain()
    gm.graph.find_nodes(op="call_function", target=aten.add.Tensor)[0].target = target
    assert words in refused(gm, ones())


def test_calls_that_are_no_operators() -> None:
    gm = plain()
    node = gm.graph.find_nodes(op="call_function", target=aten.add.Tensor)[0]
    with gm.graph.inserting_before(node):
        method = gm.graph.call_method("add", node.args)
    node.replace_all_uses_with(method)
    assert refused(gm, ones()) == "add_1 is a call_method, which is no operator"


def test_a_collective_that_is_not_imitated() -> None:
    gm = plain()
    node = gm.graph.find_nodes(op="call_function", target=aten.add.Tensor)[0]
    node.target = _torch.collective("all_to_all_single")
    assert refused(gm, ones()).startswith("add is a collective that is not imitated: ")


def test_a_program_that_computes_something_else_each_time() -> None:
    gm = graph(lambda x: torch.ops.contract_test.counting(x), ones())
    assert refused(gm, ones()) == "the functional graph computes something else each time it runs"


def test_a_graph_that_does_not_run() -> None:
    narrow = graph(lambda x: x.view(8), ones())
    assert refused(narrow, torch.ones(6)).startswith("the functional graph does not run node by node: view")
    before = plain()
    after = plain()
    after.graph.find_nodes(op="call_function", target=aten.add.Tensor)[0].target = aten.mm.default
    after.graph.find_nodes(op="call_function", target=aten.mm.default)[0].args = (
        *after.graph.find_nodes(op="placeholder"),
        *after.graph.find_nodes(op="placeholder"),
    )
    found = check(before, after, [ones()])
    assert found.status == "not-checked"
    assert found.text.startswith("the rewritten graph does not run node by node: add: RuntimeError")


def test_memory_that_does_not_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("pytest_reinplace.passes.verify.contract.effects", full)
    assert refused(plain(), ones()) == "copies of its values do not fit into the memory of the device"


# -- collectives ---------------------------------------------------------------------------------------


def test_collectives_are_imitated_even_where_there_is_a_process_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    reduce, wait = _torch.collective("all_reduce"), _torch.collective("wait_tensor")

    def build(early: bool) -> GraphModule:
        new = torch.fx.Graph()
        x = new.placeholder("x")
        copy = new.call_function(aten.clone.default, (x,))
        started = new.call_function(reduce, (copy, "sum", "0"))
        if early:  # the collective may still read its operand
            new.call_function(aten.mul_.Tensor, (copy, 2))
        done = new.call_function(wait, (started,))
        if not early:
            new.call_function(aten.mul_.Tensor, (copy, 2))
        new.output((done, copy))
        return GraphModule({}, new)

    assert check(build(False), build(False), [ones()]).status == "same"
    assert check(build(False), build(True), [ones()]).is_different


# -- what it costs ----------------------------------------------------------------------------------


def seconds(count: int) -> float:
    """Return the CPU time to check a graph of so many inputs and outputs; garbage is of other tests."""
    made = torch.fx.Graph()
    inputs = [made.placeholder(f"x{i}") for i in range(count)]
    made.output([made.call_function(aten.neg.default, (x,)) for x in inputs])
    gm, values = GraphModule({}, made), [torch.ones(1) for _ in inputs]
    gc.disable()
    try:
        start = time.process_time()
        assert check(gm, copied(gm), values).status == "same"
        return time.process_time() - start
    finally:
        gc.enable()


def test_the_time_grows_with_the_graph_and_not_with_its_square() -> None:
    seconds(10)
    few, many = (min(seconds(count) for _ in range(2)) for count in (2_000, 16_000))
    assert many < 24 * few, f"{few:.2f} s for 2,000, {many:.2f} s for 16,000"
