"""The size of a slice is computed behind the size that it is computed from."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import sympy
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.schedule import unbacked

from ..trace import arange
from .defect_programs import all_but_the_last

VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    with fresh_inductor_cache():
        yield


def waits_and_results(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[torch.Tensor]]:
    """Return how many waits each schedule was given, and what the program makes of its inputs."""
    counts: list[int] = []
    order = unbacked.order
    monkeypatch.setattr(unbacked, "order", lambda nodes: counts.append(order(nodes)))
    given = arange(4, 4), arange(4, 4) + 7
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        found = torch.compile(all_but_the_last, fullgraph=True, options=inductor_options())(*given)
    return counts, [*found, given[1]]


def expected() -> list[torch.Tensor]:
    given = arange(4, 4), arange(4, 4) + 7
    return [*all_but_the_last(*given), given[1]]


def test_what_inductor_forgets_is_waited_for_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, found = waits_and_results(monkeypatch)
    assert set(counts) == {int(VERSION < (2, 13))}
    assert all(map(torch.equal, expected(), found))


class Call:
    """Stands for a scheduled call: the symbols that it makes, computes with, and says that it needs."""

    def __init__(self, made: str = "", needed: str = "", said: str = "") -> None:
        self.made, self.size, self.said = made, sympy.Symbol(needed) if needed else 3, said
        self.node = self
        self.scheduler: Any = None

    def is_extern(self) -> bool:
        return True

    def get_name(self) -> str:
        return f"buffer of {self.made}"

    def get_outputs(self) -> list[Call]:
        return [self]

    def get_unbacked_symbol_defs(self) -> set[sympy.Symbol]:
        return {sympy.Symbol(self.made)} if self.made else set()

    def get_free_symbol_uses(self, unbacked_only: bool) -> set[sympy.Symbol]:
        return {sympy.Symbol(self.said)} if self.said else set()


@pytest.mark.parametrize(
    ("calls", "waits"),
    [
        ([Call(made="u0"), Call(made="u1", needed="u0")], [("u1", "buffer of u0")]),
        ([Call(made="u0"), Call(made="u1", needed="u0", said="u0")], []),
        ([Call(made="u0"), Call(made="u1", needed="u1")], []),
        ([Call(made="u0"), Call(made="u1", needed="s0")], []),
        ([Call(made="u1", needed="u0"), Call(made="u0")], []),
    ],
    ids=["forgotten", "said", "its own", "an input's", "made behind"],
)
def test_which_calls_wait(
    calls: list[Call], waits: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(unbacked._torch, "wait_for", lambda call, name: found.append((call.made, name)))
    calls[0].scheduler = SimpleNamespace(compute_ancestors=lambda: None)
    assert unbacked.order(calls) == len(waits)
    assert found == waits
