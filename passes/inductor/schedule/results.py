"""What a call returns that writes in place, as operators of PyTorch do: its operand, once more.

Inductor's program gives it a name, which nothing reads, and takes it for another name of the operand, so that
it is never deleted: the memory of the operand is held until the whole program returns.
"""

from __future__ import annotations

from typing import Any

from . import _torch


def let_go(nodes: list[Any]) -> int:
    """Give no name to what such calls return, where nothing reads it; returns how many there were.

    Args:
        nodes: all operations that are scheduled.
    """
    parts = [part for node in nodes for part in _torch.operations(node)]
    read = {id(call) for part in parts for call in _torch.sources(part)}
    count = 0
    for part in parts:
        if _torch.names_operand(part) and id(part.node) not in read:
            _torch.forget_result(part)
            count += 1
    return count
