"""Running a functional operator of the oracle's table with some of its operands written in place."""

from __future__ import annotations

from typing import Any

import torch

from ..execution import leaves
from .forms import Form
from .same_bytes import overlap, same_bytes


class Refused(Exception):
    """The in-place form would write bytes that it still has to read."""


def called(target: Any, form: Form, args: tuple[Any, ...], kwargs: dict[str, Any], copied: set[int]) -> Any:
    """Run an operator: the operands with these numbers functionally, the others in place.

    Of a list the former come first, from the old values, as no rewrite has a reason to do otherwise.

    Args:
        target: the functional operator.
        form: its in-place form.
        args: real values; the first is what could be written.
        kwargs: more of them.
        copied: which of the operands stay as they are: numbers of list elements, or 0.

    Raises:
        Refused: other operands meet what is written, or the result is none that the operand can hold.
    """
    first = args[0]
    if not isinstance(first, list | tuple):
        return target(*args, **kwargs) if 0 in copied else _written(target, form, args, kwargs)
    made: dict[int, Any] = {}
    kept = sorted(copied)
    written = [i for i in range(len(first)) if i not in copied]
    if kept:
        part = [_part(value, kept, len(first)) for value in args]
        made.update(zip(kept, target(*part, **kwargs), strict=True))
    if written:
        part = [_part(value, written, len(first)) for value in args]
        _check_list(part)
        form.op(*part, **kwargs)
        made.update(zip(written, part[0], strict=True))
    return [made[i] for i in range(len(first))]


def _written(target: Any, form: Form, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    base: torch.Tensor = args[0]
    for _, value in leaves([args[1:], kwargs]):
        if isinstance(value, torch.Tensor) and overlap(base, value):
            if not (form.elementwise and same_bytes(base, value)):
                raise Refused
    expected = target(*args, **kwargs)
    if (expected.dtype, expected.shape) != (base.dtype, base.shape):
        raise Refused
    form.op(*args, **kwargs)
    return base


def _check_list(part: list[Any]) -> None:
    """See that no element meets what is written for another, nor its own elsewhere, nor what all share."""
    for i, base in enumerate(part[0]):
        for j, other in enumerate(part[0]):
            if i != j and overlap(base, other):
                raise Refused
        for value in part[1:]:
            is_shared = not isinstance(value, list)
            for j, item in enumerate([value] if is_shared else value):
                if isinstance(item, torch.Tensor) and overlap(base, item):
                    if is_shared or i != j or not same_bytes(base, item):
                        raise Refused


def _part(value: Any, chosen: list[int], width: int) -> Any:
    if isinstance(value, list | tuple) and len(value) == width:
        return [value[i] for i in chosen]
    return value
