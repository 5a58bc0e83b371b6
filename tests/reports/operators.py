"""The operators that the reported programs call: each writes first, and then reads what else it was given."""

from __future__ import annotations

import torch
from torch.library import custom_op

Tensor = torch.Tensor


@custom_op("reports::add_to", mutates_args=("out",))
def add_to(out: Tensor, other: Tensor) -> None:
    out.mul_(2).add_(1)
    out.add_(other if other.shape == out.shape else other.sum())


@custom_op("reports::bump", mutates_args=("x",))
def bump(x: Tensor) -> None:
    x.mul_(3).add_(1)


@custom_op("reports::store", mutates_args=("keys", "values"))
def store(keys: Tensor, values: Tensor, new: Tensor, slot: Tensor) -> None:
    keys[slot] = new
    values[slot] = new * 2 + keys[slot]


@custom_op("reports::both", mutates_args=("x", "y"))
def both(x: Tensor, y: Tensor) -> None:
    x.add_(1)
    y.mul_(2).add_(x.sum())


lib = torch.library.Library("reports", "FRAGMENT")
lib.define("nullable(Tensor(a!)[]? xs, Tensor(b!) y) -> ()")


def _nullable(xs: list[Tensor] | None, y: Tensor) -> None:
    for x in xs or []:
        x.add_(1)
    y.mul_(2).add_(len(xs or []))


lib.impl("nullable", _nullable, "CompositeExplicitAutograd")
nullable = torch.ops.reports.nullable
