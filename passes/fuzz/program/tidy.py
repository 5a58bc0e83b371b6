"""Operators as people write them: they read all that they are given before they write.

Beside them stand those of ``adversary``, which write first. One tensor may be passed to these twice, and what
they read may overlap what they write: a functional graph computes the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

NAMESPACE = "reinplace_tidy"

_SCHEMAS = {
    "scale": "(Tensor(a!) x) -> ()",
    "fill_of": "(Tensor(a!) x, Tensor other) -> ()",
    "doubled": "(Tensor other, Tensor(a!) result) -> ()",
    "both": "(Tensor(a!) x, Tensor(b!) y) -> ()",
    "some": "(Tensor(a!)[] xs, Tensor(b!)? last=None) -> ()",
    "counted": "(Tensor(a!) x, Tensor other) -> Tensor",
    "slot": "(Tensor(a!) cache, Tensor value, SymInt at) -> ()",
}
_registered: list[Any] = []  # libraries unregister their operators when they are collected


@functools.cache
def operators() -> Any:
    """Return the namespace of the operators, ``torch.ops.reinplace_tidy``, with all of them in place."""
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    _registered.append(library)
    for name, schema in _SCHEMAS.items():
        library.define(name + schema)
        library.impl(name, _KERNELS[name], "CompositeExplicitAutograd")
        fake = _like_the_last if name == "counted" else _nothing
        torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=library)
    return getattr(torch.ops, NAMESPACE)


def _nothing(*args: Any, **kwargs: Any) -> None:
    pass


def _like_the_last(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return torch.empty(other.shape, dtype=other.dtype, device=other.device)


def _scale(x: torch.Tensor) -> None:
    x.mul_(2)


def _fill_of(x: torch.Tensor, other: torch.Tensor) -> None:
    x.copy_(other * 2)


def _doubled(other: torch.Tensor, result: torch.Tensor) -> None:
    result.copy_(other * 2 + 1)


def _both(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(1)
    y.mul_(2)


def _some(xs: list[torch.Tensor], last: torch.Tensor | None = None) -> None:
    for i, x in enumerate(xs):
        x.add_(i + 1)
    if last is not None:
        last.mul_(2)


def _counted(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    result = (other + 1).contiguous()
    x.add_(other.sum())
    return result


def _slot(cache: torch.Tensor, value: torch.Tensor, at: int) -> None:
    cache[at].copy_(value * 1)


_KERNELS: dict[str, Callable[..., Any]] = {
    "scale": _scale,
    "fill_of": _fill_of,
    "doubled": _doubled,
    "both": _both,
    "some": _some,
    "counted": _counted,
    "slot": _slot,
}
