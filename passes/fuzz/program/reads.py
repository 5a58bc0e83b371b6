"""Expressions of a hard program: values of a given shape, and values of any."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .scope import Scope

_TRIES = 8


def number(scope: Scope) -> str:
    """Return a number."""
    return str(scope.draw.randrange(2, 9))


def fitting(scope: Scope, target: str, depth: int = 0) -> str:
    """Return an expression that can be stored where a target is, by broadcasting perhaps."""
    shape = scope.shape(target)
    if shape is None or scope.chance(0.1):
        return number(scope)
    kind = scope.draw.random() if depth < 2 else 0.0
    if kind < 0.5:
        return _leaf(scope, shape)
    one = fitting(scope, target, depth + 1)
    if one.isdigit():
        return one
    if kind < 0.65:
        return f"({one} {scope.of('+', '-', '*')} {fitting(scope, target, depth + 1)})"
    if kind < 0.8:
        return f"({one} {scope.of('* 2', '* 3', '+ 1', '- 4')})"
    if scope.shape(one) != shape or not shape:
        return f"({one} * 2)"
    return _changed(scope, one, fitting(scope, target, depth + 1))


def _changed(scope: Scope, one: str, other: str) -> str:
    how = scope.draw.randrange(9)
    last = ("flip(0)", "flip(-1)", "clone()", "cumsum(0)", "roll(1, 0)", "sort(0)[0]", "contiguous()")
    return f"torch.where({one} > 50, {one}, {other})" if how > 6 else f"{one}.{last[how]}"


def _leaf(scope: Scope, shape: torch.Size) -> str:
    """Return a part of something that fits a shape."""
    for _ in range(_TRIES):
        text = scope.part(scope.any_name())
        found = scope.shape(text)
        if found is None or len(found) > len(shape):
            continue
        if found == shape or (scope.chance(0.3) and _widens(found, shape)):
            return text
    return number(scope)


def _widens(small: Sequence[int], large: Sequence[int]) -> bool:
    pairs = zip(reversed(small), reversed(large), strict=False)
    return len(small) <= len(large) and all(one in (1, other) for one, other in pairs)


def whole(scope: Scope) -> str:
    """Return an expression of any shape, of what has the shape of an input more often than not."""
    target = scope.any_name()
    if scope.chance(0.5):
        target = scope.part(target)
    kind = scope.draw.random()
    if kind < 0.35:
        return f"{target} {scope.of('+', '-', '*')} {fitting(scope, target)}"
    if kind < 0.55:
        how = (
            "flip(0)",
            "clone()",
            "cumsum(0)",
            "roll(1, 0)",
            "sort(0)[0]",
            "sum(0)",
            "sum()",
            "contiguous()",
        )
        return f"{target}.{scope.of(*how)} {scope.of('+ 1', '* 2', '+ ' + fitting(scope, target))}"
    if kind < 0.65:
        return f"({target} + {target}.flip(0))"
    if kind < 0.75:
        return f"torch.cat([{target}, {fitting(scope, target)}])"
    if kind < 0.82:
        return f"torch.stack([{target}, {fitting(scope, target)}])[{scope.of(0, 1)}]"
    if kind < 0.9:
        return f"{target}[i] * 2" if scope.chance(0.6) else f"{target}.index_select(0, i)"
    return f"torch.where({target} > 50, {target}, {fitting(scope, target)})"


def smooth(scope: Scope) -> str:
    """Return a value that a backward needs something of."""
    one = scope.any_name()
    if scope.chance(0.4):
        one = scope.part(one)
    by = scope.part(scope.draw.choice(scope.read))
    product = f"({one} * {by})" if scope.chance(0.7) else f"({one} @ {by}.t())"
    how = (
        "tanh()",
        "sigmoid()",
        "relu()",
        "cos()",
        "sin()",
        "square()",
        "softmax(-1)",
        "clone()",
        "clone().sin()",
    )
    end: str = scope.of("", "", ".clone()", f" * {by}", ".cos()", f" + {one}")
    return f"{product}.{scope.of(*how)}{end}"
