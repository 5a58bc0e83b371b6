"""Random programs with views and in-place operators, as users write them, for AOTAutograd to trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch

from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.draws import Draws

Tensor = torch.Tensor
Step = Callable[[list[Tensor]], None]

SHAPES = ((8,), (4, 6), (4, 4), (2, 4, 3))


@dataclasses.dataclass(frozen=True)
class RandomProgram:
    """A function of tensors, its arguments and its text."""

    lines: Sequence[str]
    shapes: Sequence[tuple[int, ...]]
    returned: Sequence[int]

    def inputs(self) -> list[Tensor]:
        generator = torch.Generator().manual_seed(len(self.lines))
        made = [torch.randint(0, 1 << 40, shape, generator=generator) for shape in self.shapes]
        return [*made, torch.tensor([1, 0])]

    def __call__(self, *args: Tensor) -> tuple[Tensor, ...]:
        names: dict[str, Any] = {
            "t": list(args[:-1]),
            "index": args[-1],
            "torch": torch,
            "op": adversary.operator,
        }
        for line in self.lines:
            exec(line, names)
        return tuple(names["t"][i] for i in self.returned)

    def __str__(self) -> str:
        shapes = ", ".join(map(str, self.shapes))
        return "\n".join([f"# t = inputs of shapes {shapes}", *self.lines, f"return {self.returned}"])


def random_program(seed: int) -> RandomProgram:
    """Return the program of a seed. It runs: each line was tried on tensors of the shapes."""
    draws = Draws.seeded(seed)
    shape = draws.of(SHAPES)
    shapes = [shape if draws.chance(70) else draws.of(SHAPES) for _ in range(draws.between(1, 3))]
    values = [torch.arange(torch.Size(s).numel()).view(s).clone() for s in shapes]
    names: dict[str, Any] = {
        "t": values,
        "index": torch.tensor([1, 0]),
        "torch": torch,
        "op": adversary.operator,
    }
    lines: list[str] = []
    for _ in range(draws.between(2, 8)):
        line = _line(draws, values)
        try:
            exec(line, names)
        except (RuntimeError, IndexError, ValueError):
            continue
        lines.append(line)
    returned = sorted({draws.below(len(values)) for _ in range(draws.between(0, 2))})
    return RandomProgram(lines, shapes, returned)


def _line(draws: Draws, values: list[Tensor]) -> str:
    i, j, k = (len(values) - 1 - draws.below(len(values)) for _ in range(3))
    x, y, z = f"t[{i}]", f"t[{j}]", f"t[{k}]"
    value = values[i]
    size = value.shape[0] if value.dim() else 1
    low = draws.below(max(1, size - 1))
    high = draws.between(low + 1, size)
    views = [f"{x}[{low}:{high}]", f"{x}[{low}:]", f"{x}[::2]", f"{x}[{low}]", f"{x}.view(-1)"]
    views += [f"{x}.transpose(0, -1)", f"{x}.diagonal(0, 0, -1)", f"{x}[..., 1:]", f"{x}[..., 0]"]
    values_of = [f"{x}.clone()", f"{x} * 3", f"{x} + {y}", f"{x}.flip(0)", f"torch.cat([{x}, {x}])"]
    values_of += [f"torch.slice_scatter({x}, {y}, 0, {low}, {high})", f"torch.index_put({x}, [index], {y})"]
    view = draws.of(views)
    writes = [f"{x}.add_({y})", f"{x}.mul_(3)", f"{x}.copy_({y})", f"{x}[{low}:{high}] = {y}[:{high - low}]"]
    writes += [f"{x}[index] = {y}[:2]", f"{x}.zero_()", f"{x}[{low}:{high}] = {x}[:{high - low}].clone()"]
    writes += [f"{x}.view(-1)[index] = {y}.view(-1)[:2]", f"{x}[0] = {y}.sum()"]
    calls = [
        f"op('mix')({x}, {y})",
        f"op('bump')({view})",
        f"op('mix')({view}, {x})",
        f"op('pair')({x}, {y}, {z})",
    ]
    calls += [
        f"op('late')({x}, {view}, {y})",
        f"op('many')([{view}, {y}], {x})",
        f"op('halves')({x}, {view})",
    ]
    calls += [
        f"op('maybe')(None, {x}, {y})",
        f"op('maybe_many')(None, {view})",
        f"op('mix')({x}.clone(), {x})",
    ]
    kinds = [[f"t.append({v})" for v in views], [f"t.append({v})" for v in values_of], writes, calls, calls]
    return draws.of(draws.of(kinds))
