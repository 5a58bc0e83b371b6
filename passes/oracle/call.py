"""One call of a hard program, and how another call of it differs: values, inputs, layouts, storages."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from . import _torch

_TOLERANCE = {torch.float32: 1e-3, torch.complex64: 1e-3, torch.float64: 1e-8}


class Called(NamedTuple):
    """What is left of a call.

    Args:
        results: in their order.
        given: its inputs that are tensors, as they are afterwards.
    """

    results: list[torch.Tensor]
    given: list[torch.Tensor]


def called(function: Callable[..., Any], inputs: Sequence[Any]) -> Called:
    """Call a program, and go backward from its results where one asks for a gradient."""
    results = list(function(*inputs))
    wanted = [r for r in results if r.requires_grad]
    if wanted:
        # By something else than 1: what a backward wrote over an input would be the input.
        torch.stack([r.sum() for r in wanted]).sum().mul(3).backward()
    return Called(results, [t for t in inputs if isinstance(t, torch.Tensor)])


def kept_inputs(function: Callable[..., Any], inputs: Sequence[Any]) -> int:
    """Return how many storages of inputs without a gradient a compiled program keeps for its backward."""
    given = {_storage_of(t) for t in inputs if isinstance(t, torch.Tensor) and not t.requires_grad}
    results = list(function(*inputs))  # with the last result goes what is kept
    pending, seen, kept = [r.grad_fn for r in results if r.grad_fn is not None], set[Any](), set[int]()
    while pending:
        step = pending.pop()
        if step in seen:
            continue
        seen.add(step)
        with contextlib.suppress(RuntimeError):  # a step that has run keeps nothing, and some say nothing
            kept |= {_storage_of(t) for t in getattr(step, "saved_tensors", ()) if t is not None}
            pending += [before for before, _ in step.next_functions if before is not None]
    return len(given & kept)


def _storage_of(tensor: torch.Tensor) -> int:
    """Return where the storage of a tensor lies."""
    return tensor.untyped_storage().data_ptr()


def peak(function: Callable[..., Any], inputs: Sequence[Any]) -> int:
    """Return the most bytes that a call holds above the level at its start; 0 where no profile was made."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch 2.13 prints a line for each profile otherwise
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as seen:
            left = called(function, inputs)
    except UnicodeDecodeError:  # once in some thousand profiles torch has a name in it that is no text
        return 0
    levels = itertools.accumulate(_torch.allocations(seen))
    del left
    return max([0, *levels])


def differences(expected: Called, actual: Called) -> Iterator[str]:
    """Yield how a call differs from another: what is wrong first, then layouts, then who shares a storage."""
    if len(expected.results) != len(actual.results):
        yield f"{len(actual.results)} results"
        return
    pairs = list(zip(expected.results, actual.results, strict=True))
    for i, (one, other) in enumerate(pairs):
        if not is_same(one, other):
            yield f"result {i} differs"
    for i, (one, other) in enumerate(zip(expected.given, actual.given, strict=True)):
        if not is_same(one, other):
            yield f"input {i} differs"
        elif not is_same(_storage(one), _storage(other)):
            yield f"storage of input {i} differs"
        if one.grad is not None or other.grad is not None:
            if one.grad is None or other.grad is None or not is_same(one.grad, other.grad):
                yield f"gradient of input {i} differs"
    for i, (one, other) in enumerate(pairs):
        if _strides(one) != _strides(other):
            yield f"layout of result {i} differs"
    yield from _sharing(expected, actual)


def is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors hold the same numbers, as near as another order of sums lets them."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other, tolerance = one.detach(), other.detach(), _TOLERANCE.get(one.dtype)
    if tolerance is None or torch.equal(one, other):
        return torch.equal(one, other)
    finite = one.abs().nan_to_num(0, 0, 0)
    largest = float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance * largest, equal_nan=True)


def _storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return all of the storage that a tensor lies in."""
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())


def _strides(tensor: torch.Tensor) -> list[int]:
    """Return the strides that count: of dimensions of more than one element, where there are any."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return [stride for size, stride in sizes if size > 1] if tensor.numel() else []


def _sharing(expected: Called, actual: Called) -> Iterator[str]:
    """Yield which two tensors share a storage in one call only, or lie otherwise towards each other."""
    both = [[*some.results, *some.given] for some in (expected, actual)]
    count = len(expected.results)
    for i, j in itertools.combinations(range(len(both[0])), 2):
        if i >= count or not (both[0][i].numel() and both[0][j].numel()):
            continue
        one, other = (_distance(some[i], some[j]) for some in both)
        if one != other:
            name = f"result {j}" if j < count else f"input {j - count}"
            kind = "offset" if None not in (one, other) else "sharing"
            yield f"{kind} of result {i} and {name} differs"


def _distance(one: torch.Tensor, other: torch.Tensor) -> int | None:
    """Return how far apart two tensors of one storage begin, in bytes; ``None`` where they share none."""
    if _storage_of(one) != _storage_of(other):
        return None
    return one.data_ptr() - other.data_ptr()
