"""What no-op removal drops and must leave, what patterns match then, and what is saved for the backward."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor_config
import torch.nn.functional as F
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.joint_graph import joint_graph_passes
from torch._inductor.fx_passes.post_grad import remove_noop_ops
from torch.fx import GraphModule

from pytest_reinplace.passes import ProtectPass, ReinplacePass, inductor_options
from pytest_reinplace.passes.inductor.defects import undefended
from pytest_reinplace.passes.verify import assert_equivalent

from ..trace import arange, functional

aten = torch.ops.aten
Tensor = torch.Tensor


def staged(
    fn: Callable[..., Any], *args: Any, protected: bool = True
) -> tuple[GraphModule, GraphModule, list[Any]]:
    """Return the graph of AOTAutograd, and what no-op removal and our passes make of it."""
    gm, inputs = functional(fn, *args)
    after = copy.copy(gm)
    after.graph = copy.deepcopy(gm.graph)
    if protected:
        ProtectPass()(after.graph)
        ReinplacePass()(after.graph)
    else:
        remove_noop_ops(after.graph)
    after.recompile()
    return gm, after, inputs


def source_then_target(source: torch.Tensor, target: torch.Tensor) -> None:
    target[:] = source[:]
    source.add_(1)


def target_then_source(target: torch.Tensor, source: torch.Tensor) -> None:
    target[:] = source[:]
    source.add_(1)


def half_then_source(source: torch.Tensor, target: torch.Tensor) -> None:
    """One of several views is a view of the source, too."""
    target[:] = source.chunk(1)[0]
    source.add_(1)


def swapped(a: torch.Tensor, b: torch.Tensor) -> None:
    old = a.clone()
    a.copy_(b)
    b.copy_(old)


def rotated(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    old = a.clone()
    a.copy_(b)
    b.copy_(c)
    c.copy_(old)


def twice(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    new = a + 1
    return new.clone(), new.clone()


def kept_input(a: torch.Tensor) -> torch.Tensor:
    old = a.clone()
    a.mul_(2)
    return old


def turned(a: torch.Tensor) -> None:
    a.copy_(a.t().clone())


def joined(a: torch.Tensor, b: torch.Tensor) -> None:
    b.copy_(torch.cat([a]))
    a.mul_(2)


def converted(a: torch.Tensor) -> torch.Tensor:
    old = a.double().float()
    a.add_(1)
    return old


def repeated(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
    new = a * 2
    again = new.repeat(1, 1)
    return new, again, new.view(-1), again.view(-1)


def neutral(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return a + torch.zeros(4, 4), a * torch.ones(4, 4)


def neutral_copied(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    kept = a * 1
    return kept, kept.clone()


def written_and_returned(target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """pytorch 198131: the first epilogue is an output, too."""
    target[0:, :] = source[0:, :]
    source.add_(1)
    return source


def written_before_it_is_copied(target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    source.add_(1)
    target[0:, :] = source[0:, :]
    return source


def three_copies(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    new = x.sin()
    return new.pow(1), new.clone(), torch.cat([new]), torch.slice_scatter(x, new)


def old_row(x: torch.Tensor) -> torch.Tensor:
    old = x[3].clone()
    x[3] = 0
    return old * x.sum()


PROGRAMS = [
    *(written_and_returned, written_before_it_is_copied, three_copies, old_row),
    *(source_then_target, target_then_source, swapped, rotated, twice, kept_input, turned, joined),
    *(converted, repeated, neutral, neutral_copied, half_then_source),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_stages_together_keep_the_contract(
    program: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    count = program.__code__.co_argcount
    gm, after, inputs = staged(program, *(arange(4, 4) + 100 * i for i in range(count)))
    assert_equivalent(gm, after, inputs)
    assert [r.getMessage() for r in caplog.records if r.name.startswith("pytest_reinplace")] == []


def test_without_protection_they_do_not() -> None:
    """The twin: no-op removal really breaks programs, so the test above means something.

    Which ones depends on torch: before 2.15 it breaks ``source_then_target``, too.
    """
    gm, after, inputs = staged(twice, arange(4, 4), protected=False)
    with pytest.raises(AssertionError):
        assert_equivalent(gm, after, inputs)


def test_order_alone_saves_the_copy() -> None:
    _, after, _ = staged(source_then_target, arange(4), arange(4))
    assert aten.clone.default not in [n.target for n in after.graph.nodes]


def test_a_cycle_costs_one_copy() -> None:
    _, after, _ = staged(rotated, arange(4), arange(4), arange(4))
    assert [n.target for n in after.graph.nodes].count(aten.clone.default) == 1


def only_no_ops(x: torch.Tensor) -> torch.Tensor:
    y = torch.cat([x.sin().clone()[0:].view(4, 4)]).repeat(1, 1).pow(1)
    return F.pad(y, (0, 0)).cos().clone()


def test_what_keeps_nothing_apart_is_dropped() -> None:
    gm, after, inputs = staged(only_no_ops, arange(4, 4))
    assert [n.target for n in after.graph.nodes if n.op == "call_function"] == [
        aten.sin.default,
        aten.cos.default,
    ]
    assert_equivalent(gm, after, inputs)


def almost_no_ops(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Shapes and strides stay, values do not."""
    return F.pad(x, (1, -1)), torch.round(x.long(), decimals=-1) + 1, x.pow(2), x.flip(0)


def test_what_only_looks_like_nothing_stays() -> None:
    gm, after, inputs = staged(almost_no_ops, arange(4, 4))
    assert_equivalent(gm, after, inputs)


def test_a_copy_of_a_part_stays_where_the_whole_would_have_to_be_copied() -> None:
    _, after, _ = staged(old_row, arange(64, 4))
    copied = [n.meta["val"].numel() for n in after.graph.nodes if n.target is aten.clone.default]
    assert copied == [4]


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax((q.clone() @ k.transpose(-2, -1)).clone() / 4.0, -1).clone() @ v


def added(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (x @ w).clone() + b.clone()


def multiplied(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(((q @ k.mT) * 0.25).clone(), -1) @ v.clone()


def attention_returned(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    weights = torch.softmax((q.clone() @ k.transpose(-2, -1)).clone() / 4.0, -1).clone()
    return weights @ v, weights


def product_returned(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    product = (x @ w).clone()
    return product + b.clone(), product


def matched(program: Any, shape: tuple[int, ...], options: dict[str, Any]) -> list[int]:
    """Return how often attention, and any pattern, is found."""
    torch.compiler.reset()
    counters.clear()
    torch.compile(program, fullgraph=True, options=options)(*(torch.randn(shape) for _ in range(3)))
    return [counters["inductor"][name] for name in ("fuse_attention", "pattern_matcher_count")]


HEADS = (2, 4, 8, 16)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("program", "twin", "shape"),
    [
        (attention, attention_returned, HEADS),
        (multiplied, attention_returned, HEADS),
        (added, product_returned, (8, 8)),
    ],
)
def test_patterns_match_as_often_as_without_us(program: Any, twin: Any, shape: tuple[int, ...]) -> None:
    """In the twins what lies between is returned as well, so that no kernel can hide it."""
    found = [matched(p, shape, inductor_options()) for p in (program, twin)]
    assert found == [matched(p, shape, {}) for p in (program, twin)]
    assert found[0] > found[1]


def chosen(program: Any, *args: Tensor, options: dict[str, Any]) -> dict[str, int]:
    """Return the kernels that Inductor chose by patterns: of attention, products and oneDNN."""
    torch.compiler.reset()
    counters.clear()
    with torch.no_grad(), inductor_config.patch(freezing=isinstance(program, torch.nn.Module)):
        torch.compile(program, fullgraph=True, options=options)(*args)
    named = {name: n for name, n in counters["inductor"].items() if "attention" in name or "mkldnn" in name}
    return {**named, **counters["aten_mm_info"]}


PRODUCTS = [torch.randn(8, 8) for _ in range(3)]
PAIRS = [torch.randn(HEADS) for _ in range(3)]


class Convolution(torch.nn.Module):
    """A convolution of constant weights, behind a copy, and in front of a factor of one and a copy."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu((self.layer(x.clone()) * 1).clone())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("stage", ["reinplace", "post_grad"])
@pytest.mark.parametrize(
    ("program", "args"),
    [
        (attention, PAIRS),
        (multiplied, PAIRS),
        (added, PRODUCTS),
        (Convolution().eval(), [torch.randn(1, 3, 8, 8)]),
    ],
    ids=["attention", "multiplied", "added", "convolution"],
)
def test_kernels_are_chosen_as_without_us(program: Any, args: Any, stage: Any) -> None:
    """A factor of one, which only torch 2.15 drops by itself, hides a convolution from its activation."""
    ours = chosen(program, *args, options=inductor_options(stage=stage))
    stock = chosen(program, *args, options={})
    assert stock and ours == {**ours, **stock}
    assert stage == "post_grad" or ours == stock


# -- joint graphs, cut in two ----------------------------------------------------------------------------


def cut(
    fn: Callable[..., Any], make: Callable[[], list[Tensor]], options: dict[str, Any]
) -> tuple[int, list[Tensor]]:
    """Run a program forward and backward, its graph cut as Inductor cuts it.

    Returns:
        The bytes that are saved for the backward, and all tensors afterwards: results, inputs and gradients.
    """
    saved: list[int] = []

    def partition(gm: GraphModule, given: Any, **more: Any) -> Any:
        forward, backward = min_cut_rematerialization_partition(
            joint_graph_passes(gm), given, compiler="inductor", **more
        )
        tensors = [
            n.meta["val"] for n in backward.graph.find_nodes(op="placeholder") if "tangents" not in n.name
        ]
        saved.append(sum(t.numel() * t.element_size() for t in tensors if isinstance(t, Tensor)))
        return forward, backward

    backend = aot_autograd(
        fw_compiler=lambda gm, _: make_boxed_func(gm),
        partition_fn=partition,
        decompositions=select_decomp_table(),
        keep_inference_input_mutations=True,
    )
    torch.compiler.reset()
    inputs = make()
    with inductor_config.patch(fallback_random=True, **options):
        tensors = ran(torch.compile(fn, backend=backend, fullgraph=True), inputs)
    return sum(saved), tensors


def ran(fn: Callable[..., Any], inputs: list[Tensor]) -> list[Tensor]:
    torch.manual_seed(0)
    results = fn(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    torch.stack([r.sum() for r in results]).sum().backward()
    return [t.detach() for t in (*results, *inputs, *(t.grad for t in inputs)) if t is not None]


def residual(x: Tensor, w: Tensor) -> Tensor:
    h = x.clone()
    return h + torch.relu(h @ w).clone().sin()


def dropped_out(x: Tensor, w: Tensor) -> Tensor:
    return F.dropout((x @ w).clone(), 0.5).clone() * x


def attended(x: Tensor, w: Tensor) -> Tensor:
    return torch.softmax((x @ w.t()).clone() / 4.0, -1).clone() @ w


def normed(x: Tensor, w: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    return F.batch_norm(x.clone(), mean, var, w[0], w[1], training=True).clone()


def embedded(x: Tensor, table: Tensor) -> Tensor:
    return F.embedding(torch.arange(4).clone(), table).clone() * x


def averaged(x: Tensor, average: Tensor) -> Tensor:
    old = average.detach().clone()
    with torch.no_grad():
        average.mul_(0.9).add_(x.detach(), alpha=0.1)
    return (x - old) ** 2


def matrices() -> list[Tensor]:
    return [arange(4, 4).div(9).requires_grad_(), arange(4, 4).div(7).requires_grad_()]


def with_state() -> list[Tensor]:
    return [arange(4, 4).div(9).requires_grad_(), arange(4, 4) + 1]


TRAINED = [
    *((fn, matrices) for fn in (residual, dropped_out, attended, embedded)),
    (normed, lambda: [*matrices(), torch.zeros(4), torch.ones(4)]),
    (averaged, with_state),
]


@pytest.mark.parametrize(("program", "make"), TRAINED, ids=lambda p: p.__name__)
def test_no_more_is_saved_for_the_backward_than_without_us(program: Any, make: Any) -> None:
    stock, expected = cut(program, make, {})
    ours, actual = cut(program, make, inductor_options())
    assert ours <= stock
    torch.testing.assert_close(actual, expected)


def kept_buffer(x: Tensor, state: Tensor) -> Tensor:
    old = state.clone()
    with torch.no_grad():
        state.add_(1)
    return x * old


def read_before(x: Tensor, state: Tensor) -> Tensor:
    y = x * state.sin()
    with torch.no_grad():
        state.add_(1)
    return y


class Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, state: Tensor) -> Tensor:
        ctx.save_for_backward(state.clone())
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0] * ctx.saved_tensors[0], None


def kept_for_the_backward_alone(x: Tensor, state: Tensor) -> Tensor:
    y: Tensor = Keep.apply(x, state)
    with torch.no_grad():
        state.add_(1)
    return y


@pytest.mark.parametrize("program", [kept_buffer, read_before, kept_for_the_backward_alone])
def test_the_backward_sees_what_an_input_held_before_the_forward_wrote_it(program: Any) -> None:
    expected = ran(program, with_state())
    torch.testing.assert_close(cut(program, with_state, inductor_options())[1], expected)
    with undefended("recomputed-from-written", "late-epilogue"), pytest.raises(AssertionError):
        torch.testing.assert_close(cut(program, with_state, inductor_options())[1], expected)


def two_views(x: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
    return x.exp().clone().view(-1), x.exp().clone().view(-1)


def test_what_is_computed_twice_and_returned_twice_stays_two_tensors() -> None:
    """The partitioner computes equal things once, unless it sees that both are outputs."""
    first, second, *_ = cut(two_views, matrices, inductor_options())[1]
    assert torch.equal(first, second) and first.data_ptr() != second.data_ptr()
