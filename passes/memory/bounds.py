"""Bounds of sizes without quotients and choices: ``n // 2`` is at most ``n / 2``, ``Min(m, n)`` at most n.

Intervals of symbols do not tell that ``(n + 1) // 2`` rows, two apart, lie within ``n`` rows: an interval
forgets that both are of one ``n``. A bound that names ``n`` lets the rest of the difference cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sympy
import torch

from . import _torch
from .region import Size, as_size

Known = Callable[[Any], bool]


def upper_bounds(size: Size, known: Known, least: Mapping[Any, Size]) -> Iterator[tuple[Size, ...]]:
    """Yield expressions of which a size is at most the greatest, or has the sign of such ones.

    Args:
        size: an expanded expression.
        known: whether a relation holds for all sizes.
        least: what some of the symbols are at least.

    Yields:
        Expressions without one of the quotients, choices or such symbols; where each is at most 0, so is the
        size. Where none of these appears once, by a factor, nothing.
    """
    kinds = _torch.floor_division(), _torch.lesser(), _torch.greater()
    for atom in sorted(size.atoms(*kinds), key=sympy.default_sort_key):
        factor = size.coeff(atom)
        rest = sympy.expand(size - factor * atom)
        if factor == 0 or factor.has(atom) or rest.has(atom):
            continue
        up, down = known(sympy.Ge(factor, 0)), known(sympy.Le(factor, 0))
        if isinstance(atom, kinds[0]):
            value, divisor = atom.args
            if (up or down) and known(sympy.Ge(divisor, 1)):
                # value - divisor + 1 <= divisor * atom <= value
                value = value if up else value - divisor + 1
                yield (sympy.expand(factor * value + divisor * rest),)
                return
            continue
        chosen = [sympy.expand(factor * one + rest) for one in atom.args]
        if up if isinstance(atom, kinds[1]) else down:
            yield from ((one,) for one in chosen)
        else:
            yield tuple(chosen)  # it is one of them
        return
    for symbol in sorted(size.free_symbols & least.keys(), key=str):
        factor = size.coeff(symbol)
        rest = sympy.expand(size - factor * symbol)
        if not (factor == 0 or factor.has(symbol) or rest.has(symbol)) and known(sympy.Le(factor, 0)):
            yield (sympy.expand(factor * least[symbol] + rest),)


def least_strides(tensor: torch.Tensor, hint: Callable[[Size], int]) -> dict[Any, Size]:
    """Return what the strides of a tensor that are symbols are at least, so that no two elements are one.

    Args:
        tensor: a fake tensor.
        hint: the sizes of the call that is compiled. Where elements of the tensor are the same bytes there,
            or only data tell, nothing is said.
    """
    if _torch.data_symbols((*tensor.size(), *tensor.stride())):
        return {}
    found: dict[Any, Size] = {}
    extent: Size = 1
    pairs = [(as_size(n), as_size(s)) for n, s in zip(tensor.size(), tensor.stride(), strict=True)]
    for count, stride in sorted((p for p in pairs if hint(p[0]) != 1), key=lambda p: hint(p[1])):
        if hint(stride) < hint(extent):
            return {}
        if getattr(stride, "is_Symbol", False) and not sympy.sympify(extent).has(stride):
            found[stride] = extent
        extent = extent + (count - 1) * stride
    return found
