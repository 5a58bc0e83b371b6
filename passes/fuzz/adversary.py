"""Mutable operators that punish a wrong decision: they write first, and only then read what else they got.

Each writes all of its mutated arguments, then mixes the other operands, and the mutated ones among each
other, into them. A kernel that wrongly shares memory with one of its operands thus always shows. All
arithmetic is on integers, which wrap, so results are exact and depend on every element and its place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..ops.declarations import declare

NAMESPACE = "reinplace_adversary"


_SCHEMAS = {
    "bump": "(Tensor(a!) x) -> ()",
    "mix": "(Tensor(a!) x, Tensor other) -> ()",
    "late": "(Tensor first, Tensor(a!) x, Tensor? last=None) -> ()",
    "pair": "(Tensor(a!) x, Tensor(b!) y, Tensor other) -> ()",
    "fresh": "(Tensor(a!) x, Tensor other) -> Tensor",
    "fresh_pair": "(Tensor(a!) x, Tensor other) -> (Tensor, Tensor)",
    "many": "(Tensor(a!)[] xs, Tensor other) -> ()",
    "gathered": "(Tensor(a!) x, Tensor[] others) -> ()",
    "maybe": "(Tensor(a!)? x, Tensor(b!) y, Tensor? other) -> ()",
    "maybe_many": "(Tensor(a!)[]? xs, Tensor(b!) y) -> ()",
    "halves": "(Tensor(a!) x, Tensor other) -> ()",
    "two_lists": "(Tensor(a!)[] xs, Tensor[] others, Tensor(b!)[] ys) -> ()",
    "overwrite": "(Tensor(a!) out, Tensor other) -> ()",
    "produce": "(Tensor(a!) out, Tensor(b!) state, Tensor other) -> Tensor",
    "rows": "(Tensor(a!) x, Tensor other) -> ()",
}


# What their schemas do not say, and what is declared about them when they are made.
_DECLARED: dict[str, dict[str, Any]] = {
    "overwrite": {"write_only": ("out",)},
    "produce": {"write_only": ("out",)},
    "rows": {"elementwise": True},
}
_registered: list[Any] = []  # libraries unregister their operators when they are collected


def operator(name: str) -> Any:
    """Return an operator by name, with autograd and fake implementations in place; see ``names()``."""
    return _operators()[name]


def names() -> list[str]:
    """Return the names of all operators."""
    return list(_SCHEMAS)


@functools.cache
def _operators() -> dict[str, Any]:
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    _registered.append(library)
    found: dict[str, Any] = {}
    for name, schema in _SCHEMAS.items():
        library.define(name + schema, tags=(torch.Tag.needs_fixed_stride_order,))
        library.impl(name, _kernel(name), "CompositeExplicitAutograd")
        torch.library.register_fake(f"{NAMESPACE}::{name}", _fake(name), lib=library)
        found[name] = getattr(getattr(torch.ops, NAMESPACE), name).default
        if name in _DECLARED:
            declare(found[name], **_DECLARED[name])
    return found


def _kernel(name: str) -> Callable[..., Any]:
    kernels: dict[str, Callable[..., Any]] = {
        "bump": lambda x: _mix([x], []),
        "mix": lambda x, other: _mix([x], [other]),
        "late": lambda first, x, last=None: _mix([x], [first, last]),
        "pair": lambda x, y, other: _mix([x, y], [other]),
        "fresh": _fresh,
        "fresh_pair": lambda x, other: (_fresh(x, other), other * 5 + 1),
        "many": lambda xs, other: _mix(xs, [other]),
        "gathered": lambda x, others: _mix([x], others),
        "maybe": lambda x, y, other: _mix([x, y], [other]),
        "maybe_many": lambda xs, y: _mix([*(xs or []), y], []),
        "halves": _halves,
        "two_lists": lambda xs, others, ys: _mix([*xs, *ys], others),
        "overwrite": _overwrite,
        "produce": _produce,
        "rows": _rows,
    }
    return kernels[name]


def _fake(name: str) -> Callable[..., Any]:
    if name in ("fresh", "produce"):
        return lambda *args: torch.empty_like(args[-1])
    if name == "fresh_pair":
        return lambda x, other: (torch.empty_like(other), torch.empty_like(other))
    return lambda *args, **kwargs: None


def _mix(written: list[Any], read: list[Any]) -> None:
    written = [w for w in written if w is not None]
    for i, tensor in enumerate(written):
        tensor.mul_(3).add_(i + 1)
    for i, tensor in enumerate([*(r for r in read if r is not None), *written[1:]]):
        total = _digest(tensor) * (i + 7)
        for target in written:
            target.add_(total)


def _fresh(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    _mix([x], [other])
    return (other * 5 + _digest(x)).to(other.dtype)  # a number, too, if it is one


def _halves(x: torch.Tensor, other: torch.Tensor) -> None:
    """Write one half of the rows, read, and then write the other half."""
    middle = (x.shape[0] + 1) // 2 if x.dim() else 0
    first, second = (x[:middle], x[middle:]) if x.dim() else (x, x)
    first.mul_(3)
    total = _digest(other)
    second.mul_(5).add_(total + 1)
    first.add_(total)


def _overwrite(out: torch.Tensor, other: torch.Tensor) -> None:
    """Overwrite all of ``out`` before anything is read, and again afterwards; its old content is not used."""
    out.fill_(-11)
    total = _digest(other)
    out.copy_(torch.arange(out.numel(), device=out.device).view(out.shape) * 7 + total)


def _produce(out: torch.Tensor, state: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Overwrite ``out``, write ``state``, and only then read."""
    out.fill_(-13)
    _mix([state], [other])
    _overwrite(out, state)
    return (other * 5 + _digest(state)).to(other.dtype)


def _rows(x: torch.Tensor, other: torch.Tensor) -> None:
    """Work row by row, each read before it is written; with another shape: write first, then read."""
    if x.shape != other.shape:
        _mix([x], [other])
    elif x.dim() == 0:
        x.copy_(x * 3 + other * 7)
    else:
        for mine, theirs in zip(x.unbind(), other.unbind(), strict=True):
            _rows(mine, theirs)


def _digest(tensor: torch.Tensor) -> torch.Tensor:
    """Return a number that depends on every element and its place."""
    flat = tensor.reshape(-1)
    weights = torch.arange(1, 2 * flat.numel() + 1, 2, device=flat.device)
    total = (flat * weights).sum()
    # The upper half of a number counts where it is added to smaller numbers, too.
    return total if total.is_floating_point() or total.is_complex() else total ^ (total >> 31)
