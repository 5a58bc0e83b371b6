"""Bounds of sizes without quotients and choices: ``n // 2`` is at most ``n / 2``, ``Min(m, n)`` at most n.

Intervals of symbols do not tell that ``(n + 1) // 2`` rows, two apart, lie within ``n`` rows: an interval
forgets that both are of one ``n``. A bound that names ``n`` lets the rest of the difference cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sympy

from .. import _torch
from .region import Size

Known = Callable[[Any], bool]


def upper_bounds(size: Size, known: Known) -> Iterator[tuple[Size, ...]]:
    """Yield expressions of which a size is at most the greatest, or has the sign of such ones.

    Args:
        size: an expanded expression.
        known: whether a relation holds for all sizes.

    Yields:
        Expressions without one of the quotients or choices; where each of them is at most 0, the size is.
        Where there is no quotient and no choice that appears once, by a factor, nothing.
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
