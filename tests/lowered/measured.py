"""Measuring a function in a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pytest_reinplace.base.progress import Progress
from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.lowered import compiled
from pytest_reinplace.lowered.memory import Lowered, Memory


def memory_of(fn: Callable[..., Any], *args: Any, pass_name: str = "inductor") -> Memory:
    """Return the memory of a call."""
    with Capture(pass_name, "inductor"):
        return compiled.of(fn, args, {}, Progress())[1]


def only(found: Memory) -> Lowered:
    """Return the one program that ran; nothing of the call is unexplained."""
    (program,) = found.programs
    assert not program.problem
    assert (found.unexplained, program.gaps) == (0, ())
    return program


def taken_by(fn: Callable[..., Any], *args: Any) -> Lowered:
    """Return what the one program of a function takes without gradients; nothing is unexplained."""
    with torch.no_grad():
        return only(memory_of(fn, *args))
