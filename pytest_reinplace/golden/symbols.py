"""Types of values, in which each symbolic size is a letter, given in the order in which they come."""

from __future__ import annotations

import re
import string
from typing import Any

_SYMBOL = re.compile(r"\b[a-z]+\d+\b")


class Symbols:
    """Letters for the symbols of a graph: ``A`` to ``Z``, then ``A1``; ``u`` in front of one of data."""

    def __init__(self) -> None:
        self._letters: dict[Any, Any] = {}

    def told(self, value: Any) -> str:
        """Return a size as text, ``"A + 1"``."""
        return str(self._lettered(value)) if _is_symbolic(value) else str(value)

    def in_text(self, text: str) -> str:
        """Return a text, such as the message of an assert, with letters for the symbols that it names."""
        known = {symbol.name: str(letter) for symbol, letter in self._letters.items()}
        return _SYMBOL.sub(lambda found: known.get(found[0], found[0]), text)

    def type_of(self, value: Any) -> str:
        """Return the type of a fake value: ``float32[A, 4]``, a tuple of such, a size, or nothing.

        Strides are told where they are not those of a row-major tensor, and a device that is not the CPU.
        """
        import torch

        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, list | tuple):
            return f"({', '.join(self.type_of(item) or 'None' for item in value)})"
        if _is_symbolic(value):
            return self.told(value)
        return "" if value is None else type(value).__name__

    def _tensor(self, value: Any) -> str:
        import torch

        text = f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(self.told, value.shape))}]"
        if value.layout != torch.strided:
            text += f" {str(value.layout).removeprefix('torch.')}"
        elif not _is_row_major(value):
            text += f" strides [{', '.join(map(self.told, value.stride()))}]"
        return text if value.device.type == "cpu" else f"{text} on {value.device}"

    def _lettered(self, value: Any) -> Any:
        import sympy

        expression = _expression(value)
        for symbol in sorted(expression.free_symbols - self._letters.keys(), key=_age):
            unbacked = "u" if symbol.name.startswith("u") else ""
            count = sum(letter.name.startswith("u") == bool(unbacked) for letter in self._letters.values())
            letter = string.ascii_uppercase[count % 26] + (str(count // 26) if count >= 26 else "")
            self._letters[symbol] = sympy.Symbol(f"{unbacked}{letter}", **symbol.assumptions0)
        return expression.xreplace(self._letters)


def _age(symbol: Any) -> tuple[int, str]:
    digits = "".join(c for c in symbol.name if c.isdigit())
    return int(digits or 0), symbol.name


def _is_symbolic(value: Any) -> bool:
    import torch

    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _expression(value: Any) -> Any:
    import sympy

    return value.node.expr if _is_symbolic(value) else sympy.sympify(value)


def _is_row_major(value: Any) -> bool:
    """Return whether strides are what they are by default, for whatever sizes; no guard is made."""
    import sympy

    expected: Any = sympy.Integer(1)
    at_least_one: Any = sympy.Integer(1)
    for size, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
        size, stride = _expression(size), _expression(stride)
        if size == 1:
            continue
        if stride not in (expected, at_least_one) and sympy.expand(stride - expected) != 0:
            return False
        expected, at_least_one = expected * size, at_least_one * sympy.Max(1, size)
    return True
