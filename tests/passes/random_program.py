"""Random programs that write in place, as text: for what only compiling whole programs can show.

They write through views of inputs and of what they compute, by kernels, slices, indices, masks and lists, and
read in between what they overwrite later. Nothing that is written shares elements with what the same call
reads: eager mode would see its own write, which a functional graph does not.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from pytest_reinplace.passes import adversary

_LENGTH, _SIDE = 24, 5
_KERNELS = ("mix", "late", "rows", "bump")
_READ_ONLY = ("w", "v")
_PARTS = ("[0:3, 0:3]", "[1:4, 1:4]", "[0:3, 1:4]", ".t()[0:3, 0:3]", ".t()[1:4, 0:3]")


class RandomProgram:
    """One program.

    Args:
        seed: of all choices, and of the numbers in its inputs.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._draw = random.Random(seed)
        self._is_square = self._draw.random() < 0.4
        self._names = ["a", "b", *_READ_ONLY]
        self._results: list[str] = []
        lines = [self._statement() for _ in range(self._draw.randrange(3, 9))]
        returned = [f"{n}.sum()" if self._draw.random() < 0.15 else n for n in self._results]
        lines.append(f"return [{', '.join(returned)}]")
        self.source: str = "def program(a, b, w, v, i):\n" + "".join(f"    {line}\n" for line in lines)

    def function(self) -> Callable[..., list[torch.Tensor]]:
        """Return the program, to be called with five inputs."""
        kernels = {name: adversary.operator(name) for name in _KERNELS}
        names: dict[str, Any] = {"torch": torch, "kernels": kernels}
        exec(self.source, names)
        found: Callable[..., list[torch.Tensor]] = names["program"]
        return found

    def inputs(self) -> list[torch.Tensor]:
        """Return new inputs, the same at each call: four of one shape, and three places."""
        shape = (_SIDE, _SIDE) if self._is_square else (_LENGTH,)
        numbers = torch.Generator().manual_seed(self.seed)
        given = [torch.randint(0, 100, shape, generator=numbers) for _ in range(4)]
        return [*given, torch.tensor([0, 2, 3])]

    def _view(self, name: str) -> str:
        if self._is_square:
            return name + self._draw.choice(_PARTS)
        first = self._draw.randrange(5)
        return f"{name}[{first}:{first + 12}]"

    def _written(self) -> str:
        return self._draw.choice([n for n in self._names if n not in _READ_ONLY])

    def _value(self) -> str:
        """Return an expression whose value is new: a copy of what is written may be read for it."""
        return f"({self._expression(0)} * 1)"

    def _expression(self, depth: int) -> str:
        part = lambda: self._expression(depth + 1)  # noqa: E731
        kind = 0.0 if depth > 1 else self._draw.random()
        if kind < 0.3:
            return self._view(self._draw.choice(self._names))
        if kind < 0.6:
            return f"({part()} {self._draw.choice('+*-')} {part()})"
        if kind < 0.75:
            return f"({part()} * {self._draw.randrange(2, 5)})"
        if kind < 0.85:
            return f"{part()}.flip(0)" if kind < 0.8 or not self._is_square else f"{part()}.t()"
        if kind < 0.9:
            return f"({part()} + {part()}.sum())"
        return f"{part()}.clone()" if kind < 0.95 else f"torch.where({part()} > 50, {part()}, {part()})"

    def _statement(self) -> str:
        kinds = (self._store, self._kernel, self._put, self._mask, self._list, self._compute, self._compute)
        return self._draw.choice((self._store, self._store, *kinds))()

    def _store(self) -> str:
        into = self._view(self._written())
        how = self._draw.choice(("copy_", "copy_", "add_", "mul_"))
        return f"{into}.{how}({self._value() if how != 'mul_' else self._draw.randrange(2, 4)})"

    def _kernel(self) -> str:
        name, into = self._draw.choice(_KERNELS), self._written()
        into = self._draw.choice((into, self._view(into)))
        given = {"bump": [into], "late": [self._value(), into, self._value()]}
        return f"kernels[{name!r}]({', '.join(given.get(name, [into, self._value()]))})"

    def _put(self) -> str:
        where = self._draw.choice(("i", "i + 1", "torch.arange(1, 4)"))
        if self._draw.random() < 0.4:
            return f"{self._written()}[{where}] = {self._draw.randrange(9)}"
        return f"{self._written()}.index_put_(({where},), {self._draw.choice(_READ_ONLY)}[0:3])"

    def _mask(self) -> str:
        limit, value = self._draw.randrange(100), self._draw.randrange(9)
        return f"{self._written()}[{self._draw.choice(self._names)} > {limit}] = {value}"

    def _list(self) -> str:
        into = self._draw.sample([n for n in self._names if n not in _READ_ONLY], 2)
        added = [f"{self._draw.choice(self._names)} * 2" for _ in into]
        return f"torch._foreach_add_([{', '.join(into)}], [{', '.join(added)}])"

    def _compute(self) -> str:
        name = f"z{len(self._results)}"
        self._results.append(name)
        if self._draw.random() < 0.5:
            return f"{name} = {self._expression(0)} + 1"
        value = f"{self._draw.choice(self._names)} * {self._draw.randrange(2, 4)}"
        self._names.append(name)
        return f"{name} = {value}"
