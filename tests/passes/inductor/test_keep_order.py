"""What an operation waits for, kept when Inductor computes its loops anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy
from torch._inductor.dependencies import MemoryDep, ReadWrites, StarDep, WeakDep
from torch.utils._ordered_set import OrderedSet

from pytest_reinplace.passes.inductor.schedule._torch import keep_order


def reads(*deps: Any) -> ReadWrites:
    return ReadWrites(OrderedSet(deps), OrderedSet(), OrderedSet())


class Part:
    """An operation that reads ``buf0``, which is called ``buf1`` after a write."""

    def __init__(self, *deps: Any) -> None:
        self.read_writes = reads(*deps)
        self.mutation_renames = {"buf0": "buf1"}

    def recompute_size_and_body(self) -> None:
        """Forget all but what the loops read, under its first name, as torch 2.11 does."""
        self.read_writes = reads(memory("buf0"))

    def set_read_writes(self, found: ReadWrites) -> None:
        self.read_writes = found


def memory(name: str) -> MemoryDep:
    x = sympy.Symbol("d0", integer=True)
    return MemoryDep(name, x, (x,), (sympy.Integer(8),))


@pytest.mark.parametrize("waited", [StarDep, lambda name: WeakDep(name, name)])
def test_writes_that_are_waited_for_are_kept_and_reads_are_of_their_time(
    waited: Callable[[str], Any],
) -> None:
    part = Part(memory("buf1"), waited("buf7"))
    keep_order(part)
    part.recompute_size_and_body()
    assert {dep.name for dep in part.read_writes.reads} == {"buf1", "buf7"}


def test_what_has_no_loops_is_left_alone() -> None:
    part = object()
    keep_order(part)
    assert not hasattr(part, "recompute_size_and_body")
