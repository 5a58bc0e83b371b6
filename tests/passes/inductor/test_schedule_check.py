"""Schedules that are wrong: found, named, and made anew from the functional graph."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache
from torch.torch_version import TorchVersion

from pytest_reinplace.passes import Report, inductor_options, observe
from pytest_reinplace.passes.inductor.defects import undefended
from pytest_reinplace.passes.inductor.schedule import attempts, check
from pytest_reinplace.passes.verify import watching_schedules

from ..trace import arange, ops

Tensor = torch.Tensor


def computed_late(x: Tensor, w: Tensor, z: Tensor) -> Tensor:
    earlier = x * 2
    ops.scale(x[:40], w[:40])
    return earlier + z


def listed(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    torch._foreach_add_([x, y], [y * 3, x * 3])
    return z + 1


def in_order(x: Tensor, w: Tensor, z: Tensor) -> Tensor:
    ops.scale(x, w)
    y = x + 1
    ops.scale(x, y)
    z.copy_(x)
    return y


def compiled(program: Callable[..., Any]) -> tuple[bool, list[str], list[Report]]:
    """Return whether a compiled program is right, what was found wrong, and what was decided."""
    expected, given = ([arange(96) + i for i in range(3)] for _ in range(2))
    result, found, reports = program(*expected), [], []
    torch.compiler.reset()
    with (
        fresh_inductor_cache(),
        watching_schedules(found.append),
        observe(lambda report, _: reports.append(report)),
    ):
        actual = torch.compile(program, fullgraph=True, options=inductor_options())(*given)
    torch.compiler.reset()
    return torch.equal(result, actual) and all(map(torch.equal, expected, given)), found, reports


@pytest.mark.parametrize(
    ("program", "reader", "off"),
    [(computed_late, "mul", "spoiled-by-a-kernel"), (listed, "_foreach_add_", "spoiled-by-a-list")],
)
def test_a_read_that_comes_too_late_is_named_and_compiled_once_more(
    program: Callable[..., Any], reader: str, off: str, caplog: pytest.LogCaptureFixture
) -> None:
    with undefended(off), caplog.at_level(logging.WARNING):
        is_right, found, reports = compiled(program)
    assert is_right
    assert len(found) == 1 and found[0].startswith(reader) and "test_schedule_check.py:" in found[0]
    assert found[0] in caplog.text
    assert reports == [Report()]  # of the graph that is kept


@pytest.mark.parametrize("program", [computed_late, listed, in_order])
def test_with_all_defences_nothing_is_found(program: Callable[..., Any]) -> None:
    is_right, found, reports = compiled(program)
    assert is_right and found == [] and len(reports) == 1 and reports[0].clones == []


def test_a_race_in_a_kernel_is_found() -> None:
    with undefended("racing-fusion"):
        is_right, found, _ = compiled(shifted)
    assert is_right
    assert ["race for" in text for text in found] in ([True], [])  # torch 2.15 makes none


def shifted(x: Tensor, w: Tensor, z: Tensor) -> Tensor:
    x[80:82] = 7
    y = x[0:40] + w[:40]
    x[1:41] = w[:40] * 3
    return y + z[:40]


def test_what_stays_wrong_is_only_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "problem", lambda nodes: "never right")
    is_right, found, reports = compiled(in_order)
    assert is_right and found == ["never right"] * 2 and reports == [Report()]
    assert "nothing can be done: never right" in caplog.text


def test_a_check_that_fails_fails_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(nodes: Any) -> str:
        raise RuntimeError("no such name")

    monkeypatch.setattr(check, "problem", fails)
    is_right, found, reports = compiled(in_order)
    assert is_right and found == [] and len(reports) == 1
    assert "no such name" in caplog.text


def test_what_cannot_be_copied_is_compiled_all_the_same(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(gm: Any) -> Any:
        raise RuntimeError("no copy")

    monkeypatch.setattr(attempts, "copied", fails)
    is_right, found, reports = compiled(in_order)
    assert is_right and found == [] and len(reports) == 1 and "no copy" in caplog.text


def sums_over_a_ring(ring: Tensor, total: Tensor, frames: Tensor) -> Tensor:
    """What an operation was to compute was put into memory since: it reads that, and the ring of its turn."""
    ring, total, frames = ring.view(8, 12)[:4, :3], total[:3], frames.view(8, 12)[:2, :3]
    output = frames.new_zeros(2, 2, 3)
    for t in range(2):
        place = (total[:1].long() + t) % 4
        total -= ring[place].squeeze(0)
        total += frames[t]
        ring[place] = frames[t : t + 1]
        output[t, 0] = frames[t] - total
        if t:
            output[t, 1] = output[t - 1, 0]
    return output


def eliminated(x: Tensor, pivots: Tensor, z: Tensor) -> Tensor:
    """A row is computed again from what its matrix was computed of, beside the matrix as it is now."""
    rows = x[:64].view(4, 4, 4) + 20 * torch.eye(4)
    every = torch.arange(4)
    for k in range(3):
        chosen = rows[:, k:, k].abs().argmax(1) + k
        pivots.view(4, -1)[:, k] = chosen
        row = rows[every, chosen].clone()
        rows[every, chosen] = rows[:, k]
        rows[:, k] = row
        rows[:, k + 1 :, k + 1 :] -= rows[:, k + 1 :, k : k + 1] @ rows[:, k : k + 1, k + 1 :]
    return rows.sum(0)


def messages_beside_nodes(x: Tensor, w: Tensor, z: Tensor) -> Tensor:
    """What is concatenated first is copied to its place before a kernel writes what lies beside it."""
    nodes, places = x.view(8, 12) % 7 - 3, z.long().view(8, 12) % 8
    messages = ((nodes @ (w.view(8, 12) % 3).t()) @ nodes).relu()
    largest = torch.zeros(8, 12).scatter_reduce_(0, places, messages, "amax")
    return torch.cat([nodes, largest], 1) @ torch.ones(24, 5)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", [sums_over_a_ring, eliminated, messages_beside_nodes])
def test_what_is_read_from_memory_is_not_read_late(program: Callable[..., Any]) -> None:
    is_right, found, _ = compiled(program)
    assert is_right and found == []


def read_after_the_whole_was_written(x: Tensor, w: Tensor, z: Tensor) -> Tensor:
    """Inductor computes what is concatenated in the concatenation, which the kernel overwrites."""
    part = x + 1
    whole = torch.cat([part, w * 2])
    whole[2:4] = 0
    ops.scale(whole, z)
    return torch.cat([whole, part.view(8, 12).sum(0)])


def read_before_the_whole_is_written(x: Tensor, w: Tensor, z: Tensor) -> Tensor:
    """Inductor puts the sum off until it is asked for: it reads by another name than is written."""
    part = x + 1
    whole = torch.cat([part, w * 2])
    summed = part.view(8, 12).sum(0)
    whole[2:4] = 0
    ops.scale(whole, z)
    return torch.cat([whole, summed])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("program", [read_after_the_whole_was_written, read_before_the_whole_is_written])
def test_what_is_concatenated_is_not_read_once_the_whole_was_written(program: Callable[..., Any]) -> None:
    is_right, found, _ = compiled(program)
    assert is_right and [text.split()[0] for text in found] == ["sum_1"]


# Before torch 2.15 a part is computed into the whole, also where it is written later.
PARTS_SHARE = TorchVersion(torch.__version__) < (2, 15)


def returned_before_a_part_is_written(x: Tensor, w: Tensor, z: Tensor) -> Tensor:
    part = x + 1
    whole = torch.cat([part, w * 2])
    torch._foreach_add_([part[0:1]], [4])
    z.add_(part.sum())
    return whole


@pytest.mark.usefixtures("quick")
def test_a_concatenation_that_is_returned_is_not_written_by_its_part() -> None:
    is_right, found, _ = compiled(returned_before_a_part_is_written)
    assert is_right and [text.split()[0] for text in found] == (["output"] if PARTS_SHARE else [])
