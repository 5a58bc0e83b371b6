"""A copy of a buffer that is written by index and through a view, while the buffer stays as it is."""

from __future__ import annotations

import torch

from pytest_reinplace import Program


class Draft(torch.nn.Module):
    """Rows of a copy replaced, and the first of each group of columns reset."""

    def __init__(self, group: int) -> None:
        super().__init__()
        self.group = group

    def forward(self, buffer: torch.Tensor, index: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return ``buffer`` with new ``rows`` at ``index`` and every ``group``-th element zero."""
        draft = buffer.clone()
        draft[index] = rows
        draft.view(-1, self.group)[:, 0] = 0
        return draft


def forward(device: str, *, rows: int, cols: int, written: int, group: int) -> Program:
    """Return a call on a buffer of ``rows`` times ``cols`` elements, ``written`` of its rows replaced."""
    torch.manual_seed(0)
    with torch.device(device):
        index = torch.randperm(rows)[:written]
        return Program(Draft(group), (torch.randn(rows, cols), index, torch.randn(written, cols)))
