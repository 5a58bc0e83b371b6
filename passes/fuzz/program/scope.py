"""The names of a hard program while it is drawn, each with its value: a line is kept where it runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

_ENTRIES = 400  # elements that a value may have: what is drawn must not grow


class Scope:
    """What a program can name, in each of its calls.

    Args:
        draw: for all choices.
        calls: for each call what its names are, with the inputs in place.
        written: the inputs that may be written.
        read: those that may be read only.
    """

    def __init__(
        self,
        draw: random.Random,
        calls: Sequence[dict[str, Any]],
        written: Sequence[str],
        read: Sequence[str],
    ) -> None:
        self.draw = draw
        self.calls: list[dict[str, Any]] = list(calls)
        self.written: list[str] = list(written)
        self.read: list[str] = list(read)
        self.places: list[str] = ["i"]
        self.masks: list[str] = []
        self.made: int = 0
        self.recent: str = "x"

    def chance(self, share: float) -> bool:
        """Return True in that share of the cases."""
        return self.draw.random() < share

    def of(self, *some: Any) -> Any:
        """Return one of some."""
        return self.draw.choice(some)

    def new(self) -> str:
        """Return a name that is free."""
        self.made += 1
        return f"z{self.made}"

    def value(self, text: str, call: int = 0) -> Any:
        """Return what an expression is in a call, ``None`` where it has no value."""
        try:
            return eval(text, self.calls[call])
        except Exception:  # noqa: BLE001  (what is drawn may be nonsense)
            return None

    def shape(self, text: str) -> torch.Size | None:
        """Return the shape of an expression that is a tensor of a size that may be used."""
        value = self.value(text)
        fits = isinstance(value, torch.Tensor) and 0 < value.numel() <= _ENTRIES
        return value.shape if fits else None

    def tried(self, line: str) -> bool:
        """Run a line in each call and return whether all went well."""
        for names in self.calls:
            try:
                exec(line, names)
            except Exception:  # noqa: BLE001  (what is drawn may be nonsense)
                return False
        return True

    def asks_for_gradients(self, names: Sequence[str]) -> bool:
        """Return whether one of the values that some names stand for asks for a gradient."""
        return any(getattr(self.value(name), "requires_grad", False) for name in names)

    def is_apart(self, text: str, others: Sequence[str]) -> bool:
        """Return whether an expression shares no storage with others, in any call."""
        for call in range(len(self.calls)):
            value, *rest = (self.value(t, call) for t in (text, *others))
            if not isinstance(value, torch.Tensor):
                continue
            places = [t.untyped_storage().data_ptr() for t in rest if isinstance(t, torch.Tensor)]
            if value.untyped_storage().data_ptr() in places:
                return False
        return True

    def target(self) -> str:
        """Return a part of something that may be written, of what was written last more often than not."""
        if self.recent not in self.written or self.chance(0.5):
            self.recent = self.draw.choice(self.written)
        return self.part(self.recent)

    def any_name(self) -> str:
        """Return the name of a value, of what was written last more often than others."""
        is_recent = self.recent in self.written and self.chance(0.4)
        return self.recent if is_recent else str(self.draw.choice([*self.written, *self.read]))

    def part(self, text: str, most: int = 2) -> str:
        """Return a view of what an expression is, or the expression itself."""
        for _ in range(self.of(0, 1, 1, 1, most)):
            shape = self.shape(text)
            longer = text + self.draw.choice(self._selectors(shape)) if shape else text
            if self.shape(longer) is None:
                break
            text = longer
        return text

    def _selectors(self, shape: torch.Size) -> list[str]:
        if not shape:
            return [""]
        a, b = sorted(self.draw.sample(range(shape[0] + 1), 2))
        some = [f"[{a}:{b}]", f"[{a}:{b}]", "[k:]", "[:k]", "[0:1]", "[1:]", "[:-1]", "[::2]", "[1::2]"]
        some += [
            "[k]",
            f"[{a}]",
            f".narrow(0, 1, {max(b - 1, 1)})",
            ".unsqueeze(0)",
            ".chunk(2)[1]",
            "[k:k + 2]",
        ]
        some += [".view(-1)[1:4]", ".view(2, -1)[1]", ".unfold(0, 2, 2)[0]", ".as_strided((3,), (2,))"]
        if len(shape) > 1:
            c, d = sorted(self.draw.sample(range(shape[1] + 1), 2))
            some += [
                f"[:, {c}:{d}]",
                f"[:, {c}:{d}]",
                f"[{a}:{b}, {c}:{d}]",
                f"[{a}:{b}, {c}:{d}]",
                "[:, k:]",
            ]
            some += [
                ".t()",
                f".t()[{c}:{d}]",
                ".diagonal()",
                "[:, k]",
                f"[:, {c}]",
                f".select(1, {c})",
                "[..., 0]",
            ]
            some += ["[1:, 1:]", "[:, ::2]", ".transpose(0, 1)", f".split(2)[{a // 2}]", ".unbind()[1]"]
        return some
