"""A program that Inductor has written, and one call of it, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .allocation import Origin


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A program that Inductor has written.

    Args:
        text: its Python wrapper.
        graph: the name of its graph, as reports have it: ``"[fw 0/0]"``.
        constants: what it reads by name besides its inputs.
        origins: where its buffers come from, by name.
        sources: the user's line of each of its lines that has one.
    """

    text: str
    graph: str = ""
    constants: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    origins: Mapping[str, Origin] = dataclasses.field(default_factory=dict)
    sources: Mapping[int, str] = dataclasses.field(default_factory=dict)

    def source(self, line: int) -> str:
        """Return the user's line that a line of the program belongs to, empty where it is not known."""
        found = max((number for number in self.sources if number <= line), default=None)
        return "" if found is None else self.sources[found]


@dataclasses.dataclass(frozen=True, slots=True)
class Given:
    """A tensor that a program is called with, without its data.

    Args:
        size: its sizes.
        stride: its strides.
        offset: where it begins in its storage, in elements.
        dtype: its dtype.
        device: its device.
        address: that of its storage; the same for tensors that share one.
        nbytes: the bytes of its storage.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: Any
    device: Any
    address: int
    nbytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call of a program as it really was.

    Args:
        program: the program.
        inputs: what it was called with: tensors as :class:`Given`, all else as it is.
        lines: the lines that ran, in their order.
        answers: the numbers that it asked tensors for, in their order.
        results: what the operators returned whose sizes depend on data, in the order of their calls.
        released: the addresses of the storages that were given and released while it ran.
    """

    program: Program
    inputs: tuple[Any, ...]
    lines: tuple[int, ...] = ()
    answers: tuple[Any, ...] = ()
    results: tuple[tuple[Given, ...], ...] = ()
    released: frozenset[int] = frozenset()
