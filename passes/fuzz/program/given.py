"""The inputs of one call of a hard program, as text: where each lies in its storage, and who shares one."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

_PLACES = ("whole", "whole", "inside", "inside", "gaps", "turned")
NAMES = ("x", "y", "w", "v", "i", "k")


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """What all inputs of one call have in common.

    Args:
        rows: of ``x``, ``y`` and ``w``; their only size where there are no columns.
        columns: of the same, or 0 where they have one dimension; ``v`` is a row of as many.
        dtype: of all but the places ``i``.
        is_training: whether ``w`` and ``v`` ask for gradients.
    """

    rows: int
    columns: int
    dtype: str
    is_training: bool = False

    @property
    def count(self) -> int:
        """Return how many elements ``x`` has."""
        return self.rows * max(self.columns, 1)

    @property
    def shaped(self) -> str:
        """Return what makes ``x`` of a row of its elements."""
        return f".view({self.rows}, {self.columns})" if self.columns else ""

    def numbers(self, count: int, first: int) -> str:
        """Return the text of a new row of numbers."""
        return f"numbers({count}, {first}, {self.dtype})"


def drawn(draw: random.Random, form: Form, at: int, *, is_inside: bool = False) -> list[str]:
    """Return the lines that make the inputs of one call.

    Args:
        draw: for where they lie and who shares a storage.
        form: their sizes and their dtype.
        at: the number ``k``.
        is_inside: whether all begin inside storages of their own, and have no gaps.
    """
    how = ("inside",) if is_inside else _PLACES
    lines = [*_one(draw, form, "x", 3, how), *_one(draw, form, "y", 40, how)]
    if draw.random() < 0.4 and not is_inside:
        lines = _two(draw, form)
    lines += _one(draw, form, "w", 71, how)
    v = form.numbers(form.columns or form.rows, 19)
    if draw.random() < 0.3:
        v = f"{form.numbers((form.columns or form.rows) + 5, 19)}[3:-2]"
    lines += [f"v = {v}", f"i = torch.tensor({sorted(draw.sample(range(4), 2))})", f"k = {at}"]
    if form.is_training:
        lines += [
            "x.div_(50), y.div_(50)",
            "w, v = w.detach().div(50).requires_grad_(), v.detach().div(50).requires_grad_()",
        ]
    return lines


def _one(draw: random.Random, form: Form, name: str, first: int, places: Sequence[str]) -> list[str]:
    """Place one input in a storage of its own: whole, inside, with gaps, or transposed."""
    rows, columns, count = form.rows, form.columns, form.count
    how = draw.choice(places)
    if how == "inside":
        begin = draw.choice((1, 4, columns or 8))
        return [f"{name} = {form.numbers(count + begin + 3, first)}[{begin}:{begin + count}]{form.shaped}"]
    if how == "gaps" and columns:
        return [f"{name} = {form.numbers(rows * (columns + 2), first)}.view({rows}, {columns + 2})[:, 1:-1]"]
    if how == "gaps":
        return [f"{name} = {form.numbers(2 * count, first)}[1::2]"]
    if how == "turned" and columns:
        return [f"{name} = {form.numbers(count, first)}.view({columns}, {rows}).t()"]
    return [f"{name} = {form.numbers(count, first)}{form.shaped}"]


def _two(draw: random.Random, form: Form) -> list[str]:
    """Place ``x`` and ``y`` in one storage: one tensor, overlapping, or one behind the other."""
    count = form.count
    how = draw.choice(("same", "overlapping", "overlapping", "behind", "behind", "woven"))
    begin = draw.choice((0, 0, 4))
    second = begin + {"same": 0, "overlapping": draw.choice((1, form.columns or 4)), "behind": count}.get(
        how, 0
    )
    base = f"s = {form.numbers(2 * count + 8, 3)}"
    if how == "woven":
        return [base, f"x = s[0:{2 * count}:2]{_safe(form)}", f"y = s[1:{2 * count}:2]{_safe(form)}"]
    x = f"x = s[{begin}:{begin + count}]{form.shaped}"
    if how == "same" and draw.random() < 0.6:
        return [base, x, "y = x"]
    return [base, x, f"y = s[{second}:{second + count}]{form.shaped}"]


def _safe(form: Form) -> str:
    return f".unflatten(0, ({form.rows}, {form.columns}))" if form.columns else ""
