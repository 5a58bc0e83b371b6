"""Optimizers as they are shipped: torch's own, schedulefree's and pytorch_optimizer's."""

from __future__ import annotations

import copy
import importlib
from typing import Any

from pytest_reinplace import Program

from .weights import Step, begin, weights


class Shipped(Step):
    """An optimizer that counts its steps in Python numbers and keeps settings beside its groups."""

    def step(self) -> None:
        """Update weights and states in place; the same step of the training however often it is called."""
        groups = self.optimizer.param_groups
        numbers = [{name: group[name] for name in group if name != "params"} for group in groups]
        self.optimizer.step()
        for group, before in zip(groups, numbers, strict=True):
            group.update(before)

    def __deepcopy__(self, memo: dict[int, Any]) -> Shipped:
        """Return a copy with the settings, which copying a torch optimizer leaves out."""
        copied = copy.deepcopy(self.optimizer, memo)
        for name, value in vars(self.optimizer).items():
            if name not in vars(copied):
                setattr(copied, name, copy.deepcopy(value, memo))
        return Shipped(copied)


def step(
    device: str,
    *,
    name: str,
    options: dict[str, Any],
    layers: int,
    hidden: int,
    intermediate: int,
) -> Program:
    """Return one step of the optimizer that ``name``, ``package.module:class``, names."""
    module, _, kind = name.partition(":")
    parameters = weights(device, layers, hidden, intermediate)
    optimizer: Any = getattr(importlib.import_module(module), kind)(parameters, **options)
    if hasattr(optimizer, "train"):
        optimizer.train()
    begin(optimizer)
    return Program(Shipped(optimizer).step)
