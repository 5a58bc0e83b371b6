"""A graph with other contents: what holds for one set of numbers by luck does not hold for another."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..execution import RunError, address, attributes, cloned, leaves, run, stored_bytes
from .forms import form_of
from .slots import is_plain_clone

aten: Any = torch.ops.aten
Move = Callable[[int, int, int], tuple[int, int, int]]  # of the start, end and step of an ``arange``
_SHIFTS = (1, *range(-1, -24, -1))
_FAR = 5000  # no index names such a row


# What these make says little of what they read: another number may give the same result.
COARSE = (aten.heaviside.default, aten.div.Scalar_mode)
_ANEW = (aten.neg.default, aten.add.Tensor, aten.mul.Tensor, *COARSE)


def variations(gm: GraphModule, inputs: Sequence[Any]) -> Iterator[tuple[GraphModule, list[Any]]]:
    """Yield graphs of the same form with other contents, as far as they run.

    The numbers in inputs and attributes are others: the bits of integers are flipped and all else negated,
    or they count up from somewhere, so that indices among them name rows one after the other. Indices that
    the graph makes, by ``arange``, come in reverse, or name the first rows, or others after or before the
    ones that they name; those that are given name one row again and again. Masks that the graph makes by
    comparing say the opposite, or take everything. So a row that is put back where it was, or an index that
    names what no later reader asks for, does not count as a rule.
    """
    contents = _others(gm, inputs, (_flip, _count))
    named: list[Move] = [_reversed, _first, *(functools.partial(_shifted, by) for by in _SHIFTS)]
    backwards, *moves = (functools.partial(_moving, move) for move in named)
    masks = (functools.partial(_masked, by) for by in (aten.ne.Scalar, aten.ge.Scalar))
    changes = [(contents, change) for change in (backwards, *moves, *masks)]
    counts = [(functools.partial(_count, start=start), _flip) for start in range(4)]
    counts.append((functools.partial(_count, start=_FAR), _fill))
    changes.extend((_others(gm, inputs, each), backwards) for each in counts)
    for given, moved in changes:
        varied, values = copy.deepcopy(gm), cloned(given)
        for name, value in zip(attributes(gm), values[len(inputs) :], strict=True):
            _set(varied, name, value)
        changed = [moved(node) for node in varied.graph.nodes]
        varied.recompile()
        if (any(changed) or moved is backwards) and _runs(varied, values):
            yield varied, values[: len(inputs)]


def make_uneven(node: Node, value: Any, start: int) -> None:
    """Add other numbers to each element that a node computes anew, so that no two are equal by its nature.

    Args:
        node: the node.
        value: what it computed, which is changed.
        start: what is added to the first element.
    """
    form = form_of(node)
    is_kept = form.copies if form is not None else not _converts(node)
    if is_kept and node.target not in _ANEW:
        return
    for _, tensor in leaves(value):
        if isinstance(tensor, torch.Tensor) and tensor.dtype != torch.bool and tensor.numel():
            steps = torch.arange(tensor.numel(), device=tensor.device).view(tensor.shape)
            tensor.add_((steps * 7919 + start).to(tensor.dtype))


def _converts(node: Node) -> bool:
    return node.target is aten.clone.default and not is_plain_clone(node)


def _set(gm: GraphModule, name: str, value: Any) -> None:
    owner, _, attribute = name.rpartition(".")
    module = gm.get_submodule(owner)
    if attribute in module._buffers:
        module._buffers[attribute] = value
    elif attribute in module._parameters:
        module._parameters[attribute] = torch.nn.Parameter(value, requires_grad=False)
    else:
        setattr(module, attribute, value)


def _others(gm: GraphModule, inputs: Sequence[Any], changes: Sequence[Callable[..., None]]) -> list[Any]:
    """Return other inputs and attributes, each after the first change with which the graph still runs."""
    values = cloned([*inputs, *attributes(gm).values()])
    seen: set[int] = set()
    for tensor in values:
        if not isinstance(tensor, torch.Tensor) or address(tensor) in seen or not tensor.numel():
            continue
        seen.add(address(tensor))
        whole = stored_bytes(tensor)
        whole = whole[: whole.numel() // tensor.element_size() * tensor.element_size()].view(tensor.dtype)
        as_given = whole.clone()
        for change in changes:
            change(whole)
            if _runs(gm, values):
                _set_apart(gm, values, whole, len(seen))
                break
            whole.copy_(as_given)
    return values


def _set_apart(gm: GraphModule, values: list[Any], whole: torch.Tensor, number: int) -> None:
    """Let no two tensors hold the same numbers, nor half of an integer none, where the graph runs."""
    as_given = whole.clone()
    if whole.dtype == torch.int64:
        whole.add_((number << 33) + 7 * number)
    elif whole.dtype != torch.bool:
        whole.add_(number)
    if not _runs(gm, values):
        whole.copy_(as_given)


def _flip(whole: torch.Tensor) -> None:
    if whole.dtype.is_floating_point or whole.dtype.is_complex:
        whole.neg_().sub_(0.5)
    else:
        whole.bitwise_not_()


def _count(whole: torch.Tensor, start: int = 0) -> None:
    whole.copy_(torch.arange(start, start + whole.numel(), device=whole.device))


def _fill(whole: torch.Tensor) -> None:
    whole.zero_()


def _masked(by: Any, node: Any) -> bool:
    """Compare by another operator; returns whether the node makes a mask.

    What is compared are remainders, so all of them are at least 0.
    """
    if node.target is not aten.eq.Scalar:
        return False
    node.target = by
    if by is aten.ge.Scalar:
        node.args = (node.args[0], 0)
    return True


def _moving(move: Move, node: Any) -> bool:
    """Give an ``arange`` other numbers; returns whether the node is one."""
    if node.target is not aten.arange.start_step or len(node.args) < 3:
        return False
    if not all(isinstance(a, int) and a for a in node.args[1:3]) or not isinstance(node.args[0], int):
        return False
    node.args = move(*node.args[:3])
    return True


def _reversed(start: int, end: int, step: int) -> tuple[int, int, int]:
    count = -(-(end - start) // step)
    last = start + (count - 1) * step
    return last, start - (1 if step > 0 else -1), -step


def _first(start: int, end: int, step: int) -> tuple[int, int, int]:
    return 0, end - start, step


def _shifted(by: int, start: int, end: int, step: int) -> tuple[int, int, int]:
    return start + by, end + by, step


def _runs(gm: GraphModule, values: Sequence[Any]) -> bool:
    """Return whether a graph runs on inputs, followed by its attributes."""
    own = attributes(gm)
    copies = cloned(values)
    count = len(copies) - len(own)
    try:
        run(gm, copies[:count], dict(zip(own, copies[count:], strict=True)))
    except RunError:
        return False
    return True
