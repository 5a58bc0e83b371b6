"""Whether a graph still does the same: bit by bit, in strides and in shared storage, whatever it is given."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from pytest_reinplace.passes import ReinplaceError
from pytest_reinplace.passes.ops.schema import argument
from pytest_reinplace.passes.post_grad.no_ops import folded
from pytest_reinplace.passes.verify import Finding, check
from pytest_reinplace.passes.verify.equivalence import Effects, Tolerance, difference, effects
from pytest_reinplace.passes.verify.execution import Manner
from pytest_reinplace.passes.verify.seeding import seeded

from .coverage_graphs import Graph

aten = torch.ops.aten
ROUNDED, BY_OPERAND = "rounded", "by its operand"
_NUMBERS = -0.0, math.inf, -math.inf, math.nan


def judged(graph: Graph, before: GraphModule, after: GraphModule, *, is_arithmetic: bool) -> Finding:
    """Return whether a graph does the same after a rewrite.

    Args:
        graph: where both are from.
        before: the graph.
        after: what it became.
        is_arithmetic: whether it may depend on the numbers that it is given; then it is given others, too.
    """
    if graph.given is None:
        return Finding.unchecked("the graph is not called")
    one, two = graph.runnable(before), graph.runnable(after)
    found = check(one, two, graph.given, regenerated=graph.regenerated)
    if found.status != "same":
        return found
    for given in [graph.given, *(_others(graph.given) if is_arithmetic else ())]:
        again = check(one, two, given, regenerated=graph.regenerated)
        if again.is_different:
            return again
        told = _told(graph, one, two, given)
        if told:
            return Finding(told)
    return found


def _others(given: Sequence[Any]) -> list[list[Any]]:
    """Return what a graph is given with other numbers: odd ones throughout, and its own ones shuffled."""
    return [*([_filled(x, number) for x in given] for number in _NUMBERS), [_shuffled(x) for x in given]]


def _filled(x: Any, number: float) -> Any:
    is_real = isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())
    return torch.full_like(x, complex(number, number) if x.is_complex() else number) if is_real else x


def _shuffled(x: Any) -> Any:
    """Return a tensor that lies as another one does, of its storage's numbers in another order, half negated.

    Whole numbers, which may be indices, keep their signs.
    """
    if not isinstance(x, torch.Tensor) or x.layout != torch.strided:
        return x
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())  # type: ignore[call-overload]
    chance = torch.Generator().manual_seed(0)
    whole = whole[torch.randperm(whole.numel(), generator=chance)]
    if x.is_floating_point() or x.is_complex():
        whole *= torch.randint(2, whole.shape, generator=chance) * 2 - 1
    return whole.as_strided(x.shape, x.stride(), x.storage_offset())


def is_neutral_throughout(before: GraphModule, place: str) -> bool:
    """Return whether arithmetic with a constant is its operand, whatever numbers that is made of.

    Else it is so by what computes the operand, or because nobody looks at the result.
    """
    node = next(n for n in before.graph.nodes if n.name == place)
    operand: Any = folded(node)
    dtype = operand.meta["val"].dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        return True
    for number in (*_NUMBERS, 0.0, -1.5):
        x = _filled(torch.empty(operand.meta["val"].shape, dtype=dtype), number)
        try:
            args = [x if n is operand else _constant(n) for n in node.args]
            found = node.target(*args, **node.kwargs)  # type: ignore[operator]
        except (KeyError, TypeError, RuntimeError):
            return True  # sizes that are symbols
        if not _are_same(found, x.to(found.dtype)):
            return False
    return True


def _constant(value: Any) -> Any:
    """Return the value of what is made of nothing."""
    if not isinstance(value, Node):
        return value
    if value.op != "call_function":
        raise KeyError(value.op)
    args, kwargs = map_arg((value.args, value.kwargs), _constant)
    return value.target(*args, **kwargs)  # type: ignore[operator]


def _are_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether numbers are the same with their signs; all that are none are."""
    one, other = (torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in (one, other))
    is_none = one.isnan() & other.isnan()
    return bool((is_none | ((one == other) & (one.signbit() == other.signbit()))).all())


def _told(graph: Graph, before: GraphModule, after: GraphModule, given: Sequence[Any]) -> str:
    """Return what two graphs that do the same to a compiler differ in, to the last bit."""
    manner = Manner(seeded, imitate=True)
    try:
        one, two = (_shown(graph, effects(gm, list(given), manner=manner)) for gm in (before, after))
    except (ReinplaceError, RuntimeError):
        return ""  # sizes that are symbols
    found = difference(one, two, Tolerance(any_nan=True))
    if found is None:
        return ""
    return "different" if found.kind == "alias" or "strides" in found.text else ROUNDED


def _shown(graph: Graph, run: Effects) -> Effects:
    outputs: list[tuple[str, Any]] = []
    for i, (name, value) in enumerate(run.outputs):
        if isinstance(value, torch.Tensor):
            value = value.clone() if i in graph.regenerated else value
            value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
        outputs.append((name, value))
    return dataclasses.replace(run, outputs=outputs)


def is_as_told(graph: Graph, gm: GraphModule) -> bool:
    """Return whether all values of a graph have the dtypes and strides that are written down for them.

    Behind a rule of Inductor's that is wrong, or lays something out in another way, they may not.
    """
    wrong: list[Node] = []

    def note(node: Node, value: Any) -> None:
        told = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not isinstance(told, torch.Tensor):
            return
        if value.dtype != told.dtype:
            wrong.append(node)
        if value.numel() > 1:
            pairs = zip(value.shape, value.stride(), told.stride(), strict=False)
            wrong.extend(node for n, real, fake in pairs if n > 1 and isinstance(fake, int) and real != fake)

    try:
        effects(gm, list(graph.given or ()), note, Manner(seeded, imitate=True))
    except (ReinplaceError, RuntimeError):
        return True
    return not wrong


def holds_for_longer(before: GraphModule, place: str) -> bool:
    """Return whether Inductor's sums of a constant are right at a length that no random program has."""
    node = next(n for n in before.graph.nodes if n.name == place)
    constant: Any = argument(node, "self")
    number: Any = argument(constant, "fill_value")
    dtype, of = constant.meta["val"].dtype, node.meta["val"].dtype
    for length in (3000, (1 << 24) + 64):
        right = torch.full((length,), number, dtype=dtype).cumsum(0, dtype=of)
        counted = dtype if dtype.is_floating_point else torch.int64
        theirs = torch.arange(1, length + 1, dtype=counted) * number
        if theirs.dtype != right.dtype or not torch.equal(right.nan_to_num(), theirs.nan_to_num()):
            return False
    return True
