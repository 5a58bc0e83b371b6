"""Entries that are more once they are lowered: a copy that lowering adds, a peak above its bound."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_reinplace.entry.entry import SUFFIX

LOWERED = "--reinplace-backend=inductor"


class Builder(NamedTuple):
    """The module of a builder; each has a name of its own, for pytester forgets modules by halves."""

    name: str
    source: str


COPYING = Builder(
    "copying_builder",
    """
import torch
from pytest_reinplace import Program

def product(x, y, index, value):
    y[index] = value
    return x[:, ::2] @ y

def build(device):
    x, y = (torch.ones(size, device=device) for size in ((8, 16), (8, 8)))
    return Program(product, (x, y, torch.tensor([1, 3]), torch.ones(2, 8)))
""",
)

# The product needs an operand and a result of 256 B each. The sums, 32 B, are held beside them.
ABOVE_BOUND = Builder(
    "above_bound_builder",
    """
import torch
from pytest_reinplace import Program

def split(x, w, index, value):
    x[index] = value
    t = x * w + 1
    return t.sum(1), t @ w

def given(x, index, value):
    x[index] = value
    return x.add_(1)

def build(device, which="split"):
    x, w = (torch.ones(8, 8, device=device) for _ in range(2))
    index, value = torch.tensor([1, 3]), torch.ones(2, 8)
    return Program(split, (x, w, index, value)) if which == "split" else Program(given, (x, index, value))
""",
)


def written(folder: Path, builder: Builder, more: str = "") -> Path:
    """Return the file of an entry, two lines and ``more``, beside the module of its builder."""
    folder.joinpath(f"{builder.name}.py").write_text(builder.source)
    path = folder / f"model{SUFFIX}"
    path.write_text(f"builder: {builder.name}:build\nclones: {{exact: []}}\n{more}")
    return path


def run(project: pytest.Pytester, builder: Builder, more: str, *args: str) -> pytest.RunResult:
    """Run the tests of such an entry in a project."""
    return project.runpytest_inprocess(written(project.path, builder, more).name, *args)
