"""What a GPU's allocator says at marks, cut in lines; and real calls on a GPU, where there is one."""

from __future__ import annotations

import pytest
import torch

from pytest_reinplace.lowered.allocator import cut
from pytest_reinplace.lowered.calls import ENTERED, LEFT, MARK, Marked
from pytest_reinplace.lowered.workspace import Extern, Ran

from .measured import memory_of, only

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
END = -1


def test_a_line_takes_what_was_highest_beyond_what_it_leaves() -> None:
    marks = [Marked(0, ENTERED, 10, 40), Marked(0, 0, 16, 16), Marked(0, 1, 116, 116), Marked(0, 2, 124, 194)]
    marks += [Marked(0, LEFT, 24, 124), Marked(END, ENTERED, 24, 30)]
    names = ["0:-1", "0:0", "aten::empty_strided", "0:1", "aten::convolution", "aten::empty", "0:2"]
    events = [(i, f"{MARK}{one}" if ":-" in one or one[0] == "0" else one) for i, one in enumerate(names)]
    found = cut(marks, events)
    assert (found.highest, found.outside, found.calls[0].before) == (194, 40, 16)
    assert found.calls[0].ran == (
        Ran(100, 100, (Extern("aten::empty_strided", 0, 100),)),
        Ran(178, 108, (Extern("aten::convolution", 70, 8),)),
        Ran(108, 8),
    )


def test_what_is_held_behind_the_last_program_is_outside() -> None:
    marks = [Marked(0, ENTERED, 0, 0), Marked(0, 0, 0, 0), Marked(0, LEFT, 8, 8), Marked(END, ENTERED, 8, 64)]
    assert cut(marks, []).outside == 64


def test_a_call_inside_a_line_belongs_to_that_line_too() -> None:
    marks = [Marked(0, ENTERED, 0, 0), Marked(0, 0, 0, 0), Marked(1, ENTERED, 8, 8), Marked(1, 0, 8, 8)]
    marks += [
        Marked(1, LEFT, 12, 12),
        Marked(0, 1, 14, 14),
        Marked(0, LEFT, 14, 14),
        Marked(END, ENTERED, 14, 14),
    ]
    found = cut(marks, [])
    assert found.calls[1].ran == (Ran(4, 4),)
    assert found.calls[0].ran == (Ran(14, 14), Ran(14, 14))
    assert found.outside == 14


def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.sort((x @ w).relu(), 0).values @ w


@gpu
def test_a_call_on_a_gpu_is_explained_to_the_byte() -> None:
    x, w = (
        torch.rand(8192, 33, device="cuda"),
        torch.rand(33, 33, device="cuda"),
    )  # no kernel of Triton's sorts it
    with torch.no_grad():
        found = memory_of(step, x, w)
    program = only(found)
    assert any(one.operator == "aten::sort" and one.nbytes for one in program.workspaces)
    assert found.measured == program.peak > 0


@gpu
def test_training_on_a_gpu_releases_what_was_saved() -> None:
    x, w = torch.rand(64, 33, device="cuda"), torch.rand(33, 33, device="cuda", requires_grad=True)

    def train(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        (x @ w).relu().pow(2).sum().backward()
        return w

    found = memory_of(train, x, w)
    assert found.unexplained == 0
    assert any(
        one.taken and any(given.freed is not None for given in one.taken.inputs) for one in found.programs
    )
