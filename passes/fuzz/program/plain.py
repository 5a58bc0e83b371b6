"""Random programs that write in place, as text: for what only whole programs show, compiled by Inductor.

They write through views of inputs and of what they compute, by kernels, slices, indices, masks and lists, and
read in between what they overwrite later. Nothing that is written shares elements with what the same call
reads: eager mode would see its own write, which a functional graph does not.
"""

from __future__ import annotations

import copy
import functools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import adversary

_LENGTH, _SIDE = 24, 5
_KERNELS = ("mix", "late", "rows", "bump", "fresh", "many", "overwrite", "produce")
_READ_ONLY = ("w", "v")
_SQUARE_PARTS = ("[0:3, 0:3]", "[1:4, 1:4]", "[0:3, 1:4]", ".t()[0:3, 0:3]", ".t()[1:4, 0:3]", "[0:5:2, 0:3]")
_ROW_PARTS = ("[0:24:2]", "[1:24:2]", ".chunk(2)[0]", ".chunk(2)[1]", ".view(2, 12)[1]", ".view(12, 2)[:, 0]")
_ROWS_OF_INDEX = ("scatter_", "scatter_add_", "index_add_", "index_copy_")


class RandomProgram:
    """One program, of four tensors of one shape (``a``, ``b``, ``w``, ``v``) and of places (``i``).

    Args:
        seed: of all choices, and of the numbers in its inputs.
        has_triton: whether some lines launch a Triton kernel, for which it needs a device.
    """

    def __init__(self, seed: int, has_triton: bool = False) -> None:
        self.seed = seed
        self._has_triton = has_triton
        self._draw = random.Random(seed)
        self._is_square = self._chance(0.4)
        self._is_float = self._chance(0.3)
        self._has_gaps = self._chance(0.2)
        self._is_one_storage = self._chance(0.1)
        self._names = ["a", "b", *_READ_ONLY]
        self._results: list[str] = []
        self.lines: list[str] = [self._statement() for _ in range(self._draw.randrange(3, 9))]
        self.returned: list[str] = [n + self._ending() for n in self._results if self._chance(0.9)]

    @property
    def source(self) -> str:
        """Return the program's text."""
        lines = [*self.lines, f"return [{', '.join(self.returned)}]"]
        return "def program(a, b, w, v, i):\n" + "".join(f"    {line}\n" for line in lines)

    def smaller(self) -> Iterator[RandomProgram]:
        """Yield programs of a line less; later lines may use what is no longer there."""
        yield from map(self.without, range(len(self.lines)))

    def without(self, at: int) -> RandomProgram:
        """Return the program without one of its lines, and without what that line computes among its results.

        Later lines may use what is no longer there.
        """
        other = copy.copy(self)
        name, is_named, _ = self.lines[at].partition(" = ")
        other.lines = self.lines[:at] + self.lines[at + 1 :]
        if is_named:
            other.returned = [r for r in self.returned if re.split(r"\W", r)[0] != name]
        return other

    def function(self) -> Callable[..., list[torch.Tensor]]:
        """Return the program, to be called with five inputs."""
        kernels = {name: adversary.operator(name) for name in _KERNELS}
        names: dict[str, Any] = {"torch": torch, "kernels": kernels}
        if self._has_triton:
            from ..adversary_kernel import stir

            names["stir"] = stir
        exec(self.source, names)
        found: Callable[..., list[torch.Tensor]] = names["program"]
        return found

    def inputs(self, device: str = "cpu") -> list[torch.Tensor]:
        """Return new inputs, the same at each call: four of one shape, and three places.

        They are integers, or whole numbers in ``float64``. Some have gaps between their elements, and some
        lie in one storage, one after the other.
        """
        shape = (_SIDE, _SIDE) if self._is_square else (_LENGTH,)
        numbers = torch.Generator().manual_seed(self.seed)
        dtype = torch.float64 if self._is_float else torch.int64
        count = 2 if self._has_gaps else 1
        given = [
            torch.randint(0, 100, (*shape, count), generator=numbers).to(device, dtype) for _ in range(4)
        ]
        if self._is_one_storage:
            given = list(torch.stack(given))
        return [*(g[..., 0] for g in given), torch.tensor([0, 2, 3], device=device)]

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share

    def _ending(self) -> str:
        """Return what is done to a result when it is returned."""
        return self._draw.choice((*[""] * 7, ".sum()", "[1:4]", "[0:4:2]"))

    def _view(self, name: str) -> str:
        if self._is_square:
            return name + self._draw.choice(_SQUARE_PARTS)
        first = self._draw.randrange(5)
        return name + self._draw.choice((*_ROW_PARTS, *[f"[{first}:{first + 12}]"] * len(_ROW_PARTS)))

    def _written(self) -> str:
        return self._draw.choice([n for n in self._names if n not in _READ_ONLY])

    def _two_written(self) -> list[str]:
        return self._draw.sample([n for n in self._names if n not in _READ_ONLY], 2)

    def _value(self) -> str:
        """Return an expression whose value is new: a copy of what is written may be read for it."""
        return f"({self._expression(0)} * 1)"

    def _expression(self, depth: int) -> str:
        part: Callable[[], str] = functools.partial(self._expression, depth + 1)
        kind = 0.0 if depth > 1 else self._draw.random()
        if kind < 0.3:
            return self._view(self._draw.choice(self._names))
        if kind < 0.6:
            return f"({part()} {self._draw.choice('+*-')} {part()})"
        if kind < 0.7:
            return f"({part()} * {self._draw.randrange(2, 5)})"
        if kind < 0.75:
            return f"{part()}.{self._draw.choice(('cumsum(0)', 'sort(0)[0]', 'roll(1, 0)'))}"
        if kind < 0.85:
            return f"{part()}.flip(0)" if kind < 0.8 or not self._is_square else f"{part()}.t()"
        if kind < 0.9:
            if self._is_square and self._is_float:
                return f"torch.mm({part()}, {part()})"
            return f"({part()} + {part()}.sum())"
        return f"{part()}.clone()" if kind < 0.95 else f"torch.where({part()} > 50, {part()}, {part()})"

    def _statement(self) -> str:
        writes = (self._store, self._store, self._store, self._kernel, self._rows, self._strided)
        indexed = (self._put, self._mask, self._list, self._scatter)
        computed = (self._compute, self._compute, self._compute, self._make)
        launches: tuple[Callable[[], str], ...] = (self._launch, self._launch) if self._has_triton else ()
        return self._draw.choice((*writes, *launches, *indexed, *computed))()

    def _store(self) -> str:
        into = self._view(self._written())
        how = self._draw.choice(("copy_", "copy_", "add_", "mul_"))
        return f"{into}.{how}({self._value() if how != 'mul_' else self._draw.randrange(2, 4)})"

    def _kernel(self) -> str:
        name, into = self._draw.choice(("mix", "late", "rows", "bump")), self._written()
        into = self._draw.choice((into, self._view(into)))
        given = {"bump": [into], "late": [self._value(), into, self._value()]}
        return f"kernels[{name!r}]({', '.join(given.get(name, [into, self._value()]))})"

    def _rows(self) -> str:
        """Kernels that give a result, that only write, or that write more than one."""
        name, one, (x, y) = self._draw.choice(_KERNELS[4:]), self._view(self._written()), self._two_written()
        if name == "many":
            return f"kernels['many']([{x}, {y}], {self._value()})"
        if name == "overwrite":
            return f"kernels['overwrite']({self._draw.choice((one, x))}, {self._value()})"
        result = f"z{len(self._results)}"
        self._results.append(result)
        if name == "produce":
            return f"{result} = kernels['produce']({x}, {y}, {self._value()})"
        return f"{result} = kernels['fresh']({self._draw.choice((one, x))}, {self._value()})"

    def _strided(self) -> str:
        """Write what no slice of one dimension is."""
        into = self._written()
        if self._is_square:
            part, value = f"{into}.diagonal()", f"({self._draw.choice(self._names)}.diagonal() * 2)"
        else:
            part = f"{into}.view(4, 6)[:, {self._draw.choice(('0:3', '1:4', '0:6:2'))}]"
            value = f"{self._value()}.reshape(4, 3)"
        name = self._draw.choice(("mix", "rows"))
        return self._draw.choice((f"{part}.copy_({value})", f"kernels[{name!r}]({part}, {value})"))

    def _launch(self) -> str:
        """Write by a Triton kernel, into a tensor or a part that is one dimension."""
        into = self._written()
        if self._is_square:
            part = f"{into}{self._draw.choice(('.diagonal()', '[1]', '[:, 2]'))}"
            return f"stir({part}, {self._value()}.reshape(-1))"
        return f"stir({self._draw.choice((into, self._view(into)))}, {self._value()}.repeat(2))"

    def _put(self) -> str:
        where = self._draw.choice(("i", "i + 1", "torch.arange(1, 4, device=i.device)"))
        if self._chance(0.4):
            return f"{self._written()}[{where}] = {self._draw.randrange(9)}"
        return f"{self._written()}.index_put_(({where},), {self._draw.choice(_READ_ONLY)}[0:3])"

    def _scatter(self) -> str:
        into, how = self._written(), self._draw.choice(_ROWS_OF_INDEX)
        if self._chance(0.2):
            return f"{into}.index_fill_(0, i, {self._draw.randrange(9)})"
        where = "i.view(3, 1).expand(3, 5)" if self._is_square and how.startswith("scatter") else "i"
        return f"{into}.{how}(0, {where}, {self._draw.choice(self._names)}[0:3] * 3)"

    def _mask(self) -> str:
        limit, value, into = self._draw.randrange(100), self._draw.randrange(9), self._written()
        mask = f"{self._draw.choice(self._names)} > {limit}"
        if self._chance(0.5):
            return f"{into}[{mask}] = {value}"
        how = self._draw.choice((f"fill_({mask}, {value})", f"scatter_({mask}, w * 2)"))
        return f"{into}.masked_{how}"

    def _list(self) -> str:
        into = self._two_written()
        added = [f"{self._draw.choice(self._names)} * 2" for _ in into]
        return f"torch._foreach_add_([{', '.join(into)}], [{', '.join(added)}])"

    def _compute(self) -> str:
        name = f"z{len(self._results)}"
        self._results.append(name)
        if self._chance(0.5):
            return f"{name} = {self._expression(0)} + 1"
        value = f"{self._draw.choice(self._names)} * {self._draw.randrange(2, 4)}"
        self._names.append(name)
        return f"{name} = {value}"

    def _make(self) -> str:
        """Compute a tensor that is written later: filled, copied, or put together."""
        name, like, other = f"z{len(self._results)}", *self._draw.choices(self._names, k=2)
        parts = (f"{like}[0:2]", f"{other}[1:4]")
        if not self._is_square:
            parts = (self._view(like), self._view(other))
        made = (f"torch.zeros_like({like})", f"torch.full_like({like}, 3)", f"{like}.clone()")
        value = self._draw.choice((*made, f"torch.cat([{', '.join(parts)}])"))
        self._results.append(name)
        self._names.append(name)
        return f"{name} = {value}"
