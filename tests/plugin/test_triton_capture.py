"""User Triton kernels in captured tests, also where there is no GPU."""

from __future__ import annotations

import pytest
import torch

from pytest_reinplace.capture.capture import Capture

triton = pytest.importorskip("triton")

from .kernels import add_  # noqa: E402  (imports triton)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def in_place(x, y):
    """Write into an input: in place with every pass."""
    add_[(1,)](x, y, x.numel(), BLOCK=16)
    return y + 1


def read_before(x, y):
    """Write into a temporary whose old value is returned: a clone with every pass."""
    old = x * 2
    new = old.clone()
    add_[(1,)](new, y, x.numel(), BLOCK=16)
    return old, new


@pytest.mark.parametrize("name", ["inductor", "exact", "tests.plugin.passes:nothing"])
def test_a_kernel_is_captured_judged_and_run(name: str) -> None:
    x, y = torch.ones(10, device=DEVICE), torch.ones(10, device=DEVICE)
    with Capture(name, "graph") as capture:
        result = torch.compile(in_place, fullgraph=True)(x, y)
    assert result.tolist() == [2] * 10
    assert x.tolist() == [3] * 10
    labels = [(o.label, o.reinplaced) for o in capture.report.outcomes if o.op == "add_"]
    assert labels == [("add_.x_ptr", name in ("inductor", "exact"))]


@pytest.mark.parametrize("name", ["inductor", "exact"])
def test_a_kernel_whose_operand_is_still_needed_writes_into_a_clone(name: str) -> None:
    x, y = torch.ones(10, device=DEVICE), torch.ones(10, device=DEVICE)
    with Capture(name, "graph") as capture:
        old, new = torch.compile(read_before, fullgraph=True)(x, y)
    assert (old.tolist(), new.tolist()) == ([2] * 10, [4] * 10)
    assert len(capture.report.clones) == 1
    assert capture.graphs[0].suspicious == ()


def test_our_rewrite_of_a_kernel_is_recognised_as_a_foreign_pass() -> None:
    x, y = torch.ones(10, device=DEVICE), torch.ones(10, device=DEVICE)
    for program, in_place_labels in ((in_place, ["add_.x_ptr"]), (read_before, [])):
        with Capture("tests.plugin.passes:ours", "graph") as capture:
            torch.compile(program, fullgraph=True)(x, y)
        assert capture.report.reinplaced == in_place_labels
