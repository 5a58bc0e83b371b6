"""Hard programs: what real programs do with storages, sizes and gradients, each with the inputs of two calls.

Inputs begin inside their storages, have gaps, and share a storage, in the second call another way; views are
named, written and returned; sizes are known when the numbers are. A line is drawn as text and kept where it
runs in eager mode, in both calls: the generator knows no shapes.
"""

from __future__ import annotations

import copy
import random
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import adversary
from . import given, idioms, lines
from .scope import Scope
from .tidy import operators

_HARSH = ("bump", "mix", "rows", "late", "maybe", "many", "pair", "fresh")
_TRIES = 60
_HEAD = """import torch


def numbers(count, first, dtype):
    return ((torch.arange(count) * 37 + first) % 101).to(dtype)
"""


class HardProgram:
    """One program of two tensors that it writes, two that it reads, places and a number.

    Args:
        seed: of all choices.
        is_training: whether what it reads asks for gradients, and a backward follows.
        is_dynamic: whether the second call has other sizes than the first.
    """

    def __init__(self, seed: int, *, is_training: bool = False, is_dynamic: bool = False) -> None:
        self.seed = seed
        self.is_training = is_training
        self._draw = random.Random(f"{seed} {is_training} {is_dynamic}")
        self.calls: list[tuple[str, ...]] = self._calls(is_dynamic)
        self.options: dict[str, Any] = {}
        if self._draw.random() < 0.15:
            self.options["enable_auto_functionalized_v2"] = False
        self.lines: list[str] = []
        self.returned: list[str] = []
        with warnings.catch_warnings(), torch.random.fork_rng():
            warnings.simplefilter("ignore")
            self._fill(self._scope())
            self._drop_what_fails()

    def _calls(self, is_dynamic: bool) -> list[tuple[str, ...]]:
        draw, dtypes = self._draw, ["torch.float64", "torch.float32"]
        if not self.is_training:
            dtypes = ["torch.int64", "torch.int64", *dtypes, *dtypes, "torch.complex64"]
        dtype, is_flat = draw.choice(dtypes), draw.random() < 0.2
        rows, columns = (24, 0) if is_flat else draw.choice(((6, 8), (8, 4), (8, 6), (12, 4), (5, 5)))
        more = draw.choice((0, 2, 4)) if is_dynamic else 0
        form = given.Form(rows, columns, dtype, self.is_training)
        first = tuple(given.drawn(draw, form, 1))
        how = draw.random()
        if how < 0.4 and not more:
            return [first, first]
        form = given.Form(rows + more, columns and columns + more, dtype, self.is_training)
        return [first, tuple(given.drawn(draw, form, 1 + (more > 0), is_inside=how < 0.6))]

    def _scope(self) -> Scope:
        names = self._names()
        calls = []
        for i in range(2):
            values = names[f"inputs_{i}"]()
            calls.append({**names, **dict(zip(given.NAMES, values, strict=True))})
        return Scope(self._draw, calls, ["x", "y"], ["w", "v"])

    def _fill(self, scope: Scope) -> None:
        """Draw lines and results, each kept where it runs."""
        count, tries = self._draw.randrange(2, 8), 0
        while len(self.lines) < count and tries < _TRIES:
            tries += 1
            if scope.chance(0.15):
                self.lines += self._idiom(scope)
                continue
            before = (list(scope.written), list(scope.read), list(scope.places))
            line = lines.drawn(scope, is_training=self.is_training)
            if line and scope.tried(line):
                self.lines.append(line)
            else:
                scope.written, scope.read, scope.places = before
        for name in [*scope.written, *scope.read, *scope.places]:
            is_made = name.startswith("z")
            if scope.chance(0.8 if is_made else 0.2):
                text = scope.part(name, 1) if scope.chance(0.4) else name
                self.returned.append(text + scope.of(*[""] * 6, ".sum()", ".clone()"))
        if not self.returned:
            self.returned.append("x")

    def _idiom(self, scope: Scope) -> list[str]:
        """Return the lines of an idiom, as far as they run, and let their names be used."""
        kept: list[str] = []
        for line in idioms.drawn(scope, is_training=self.is_training):
            if not scope.tried(line):
                break
            kept.append(line)
            name, is_named, text = line.partition(" = ")
            if is_named and name.isidentifier() and isinstance(scope.value(name), torch.Tensor):
                is_place = text.startswith("torch.unique(") or text.endswith(".squeeze(1)")
                (scope.places if is_place else scope.written).append(name)
        return kept

    def _drop_what_fails(self) -> None:
        """Leave out lines and results until eager mode takes the whole, its backward too."""
        while self.lines and not self._runs():
            name, is_named, _ = self.lines[-1].partition(" = ")
            del self.lines[-1]
            if is_named:
                self.returned = [r for r in self.returned if re.split(r"\W", r)[0] != name] or ["x"]
        if not self._runs():
            self.returned = ["x + 1"]

    def _runs(self) -> bool:
        try:
            for inputs in self.every_inputs():
                results = self.function()(*inputs)
                if not all(isinstance(r, torch.Tensor) for r in results):
                    return False
                wanted = [r for r in results if r.requires_grad]
                if wanted:
                    torch.stack([r.sum() for r in wanted]).sum().backward()
        except Exception:  # noqa: BLE001  (what was drawn may be nonsense as a whole)
            return False
        return True

    @property
    def source(self) -> str:
        """Return the program and what makes its inputs, as text."""
        parts = [_HEAD]
        for i, made in enumerate(self.calls):
            parts.append(f"def inputs_{i}():\n{_block(made)}    return [{', '.join(given.NAMES)}]\n")
        body = _block([*self.lines, f"return [{', '.join(self.returned)}]"])
        parts.append(f"def program({', '.join(given.NAMES)}):\n{body}")
        options = f"# options: {self.options}\n" if self.options else ""
        return options + "\n\n".join(parts)

    def _names(self) -> dict[str, Any]:
        kernels = {name: adversary.operator(name) for name in _HARSH}
        names: dict[str, Any] = {"kernels": kernels, "tidy": operators()}
        exec(self.source, names)
        return names

    def function(self) -> Callable[..., list[torch.Tensor]]:
        """Return the program, to be called with six inputs."""
        found: Callable[..., list[torch.Tensor]] = self._names()["program"]
        return found

    def inputs(self, device: str = "cpu") -> list[Any]:
        """Return new inputs of the first call: four tensors, places, and a number."""
        return self.every_inputs(device)[0]

    def every_inputs(self, device: str = "cpu") -> list[list[Any]]:
        """Return new inputs of each call."""
        names = self._names()
        with torch.device(device):
            return [names[f"inputs_{i}"]() for i in range(len(self.calls))]

    def smaller(self) -> Iterator[HardProgram]:
        """Yield programs that have a little less: a line, a result, or a call.

        Later lines may use what is no longer there.
        """
        for at in range(len(self.lines)):
            yield self.without(at)
        for at in range(len(self.returned) if len(self.returned) > 1 else 0):
            yield self._like(returned=self.returned[:at] + self.returned[at + 1 :])
        if len(self.calls) > 1:
            yield self._like(calls=self.calls[:1])
            yield self._like(calls=self.calls[1:])

    def without(self, at: int) -> HardProgram:
        """Return the program without a line, and without what that line computes among the results."""
        name, is_named, _ = self.lines[at].partition(" = ")
        other = self._like(lines=self.lines[:at] + self.lines[at + 1 :])
        if is_named:
            other.returned = [r for r in self.returned if re.split(r"\W", r)[0] != name]
        return other

    def _like(self, **changes: Any) -> HardProgram:
        other = copy.copy(self)
        for name, value in changes.items():
            setattr(other, name, value)
        return other


def _block(some: Any) -> str:
    return "".join(f"    {line}\n" for line in some)
