"""What a call returns that writes in place, as operators of PyTorch do: its operand, once more.

Inductor's program gives it a name, which nothing reads, and takes it for another name of the operand, so that
it is never deleted: the memory of the operand is held until the whole program returns.
"""

from __future__ import annotations

from typing import Any

from ..defects import defended
from . import _torch


def let_go(nodes: list[Any]) -> None:
    """Give no name to what such calls return, where nothing reads it.

    Args:
        nodes: all operations that are scheduled.
    """
    if not defended("held-results"):
        return
    parts = [part for node in nodes for part in _torch.operations(node)]
    read = {id(call) for part in parts for call in _torch.sources(part)}
    for part in parts:
        if _torch.names_operand(part) and id(part.node) not in read:
            _torch.forget_result(part)
