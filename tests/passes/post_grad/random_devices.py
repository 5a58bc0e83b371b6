"""Random programs in which the CPU makes constants for a GPU, and some that it needs itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pytest_reinplace.passes.fuzz.draws import Draws

from .devices import CPU, GPU

aten, prims = torch.ops.aten, torch.ops.prims
Tensor = torch.Tensor
DTYPES = torch.float32, torch.int64, torch.bool, torch.float64, torch.float16
DEVICES = GPU, GPU, CPU


class Program:
    """A program of some calls, the same for the same choices.

    Args:
        draws: where its choices come from.
    """

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._values: list[Tensor] = []

    def run(self, *inputs: Tensor) -> list[Tensor]:
        """Make the calls; returns some of what they made."""
        self._values = list(inputs)
        returned: list[Tensor] = []
        for _ in range(self._draws.between(4, 12)):
            calls = [self._make, self._compute, self._view, self._send, self._join, self._pick, self._number]
            made = self._draws.of([*calls, self._make, self._send, self._send])()
            self._values += made
            returned += made if made and self._draws.chance(5 if made[0].device == CPU else 40) else []
        return [*returned, inputs[0] + 1]

    def _any(self, device: torch.device | None = None) -> Tensor:
        return self._draws.of([t for t in self._values[::-1] if device is None or t.device == device])

    def _make(self) -> list[Tensor]:
        """Make a constant, mostly on the CPU."""
        device = self._draws.of([CPU, CPU, CPU, GPU])
        dtype, n = self._draws.of(DTYPES), self._draws.of([1, 2, 3])
        shape = self._draws.of([(n,), (2, n), (), (3,)])
        fill = {"dtype": dtype, "device": device}
        if self._draws.chance(40):
            return [
                prims.iota.default(3, start=0, step=1, dtype=torch.int64, device=device, requires_grad=False)
            ]
        if self._draws.chance(20):
            return [aten.bernoulli.p(aten.full.default(shape, 0.0, device=device), 0.0)]
        return [aten.full.default(shape, self._draws.of([0, 1, 2.5]), **fill)]

    def _compute(self) -> list[Tensor]:
        x = self._any(self._draws.of(DEVICES) if self._draws.chance(70) else CPU)
        fits = [t for t in self._values if t.device == x.device and t.shape == x.shape]
        y = self._draws.of(fits[::-1])
        calls: list[Callable[[], Tensor]] = [
            lambda: aten.add.Tensor(x, y),
            lambda: aten.mul.Tensor(x, 2),
            lambda: aten.le.Tensor(x, y),
            lambda: aten.where.self(aten.ge.Scalar(x, 1), x, y),
            lambda: aten.clone.default(x),
            lambda: aten.sum.default(x),
            lambda: prims.convert_element_type.default(x, self._draws.of(DTYPES)),
        ]
        return [self._draws.of(calls)()]

    def _view(self) -> list[Tensor]:
        x = self._any(self._draws.of(DEVICES))
        views: list[Callable[[], Any]] = [
            lambda: aten.unsqueeze.default(x, 0),
            lambda: aten.alias.default(x),
            lambda: aten.expand.default(x, [2, *x.shape]),
            lambda: aten.split.Tensor(x, 1)[0] if x.dim() and x.numel() else aten.alias.default(x),
        ]
        return [self._draws.of(views)()]

    def _send(self) -> list[Tensor]:
        """Copy a value to the other device, perhaps twice, or to where it is."""
        x = self._any(CPU) if self._draws.chance(85) else self._any(GPU)
        to = GPU if x.device == CPU or self._draws.chance(50) else CPU
        made = [prims.device_put.default(x, to)]
        return [*made, prims.device_put.default(x, to)] if self._draws.chance(25) else made

    def _join(self) -> list[Tensor]:
        x = self._any(self._draws.of(DEVICES))
        fits = [t for t in self._values if t.device == x.device and t.dim() == x.dim() == 1]
        return [aten.cat.default([x, self._draws.of(fits)])] if fits and x.dim() == 1 else []

    def _pick(self) -> list[Tensor]:
        """Pick rows by numbers, which may be the CPU's."""
        x = self._any(GPU)
        fits = [t for t in self._values if t.dtype == torch.int64 and t.dim() == 1]
        if not fits or x.dim() == 0:
            return []
        of = self._draws.of(fits[::-1])
        return [aten.index.Tensor(x, [aten.mul.Tensor(of, 0)])] if x.shape[0] else []

    def _number(self) -> list[Tensor]:
        """Compute with a number of the CPU."""
        x = self._any(GPU)
        fits = [t for t in self._values if t.device == CPU and t.dim() == 0]
        return [aten.mul.Tensor(x, self._draws.of(fits))] if fits else []


def inputs() -> list[Tensor]:
    """Return tensors, of which the last one is on the CPU."""
    return [torch.arange(6.0).reshape(2, 3), torch.arange(3), torch.arange(3) - 1]


INPUT_DEVICES = GPU, GPU, CPU
