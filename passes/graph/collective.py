"""Asynchronous collectives as a graph shows them: which nodes they are, and when they are over."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

from torch.fx import Node

NAMESPACE = "_c10d_functional"
WAIT = "wait_tensor"
END = math.inf  # the time after the last node, when the caller looks


def is_collective(target: Any) -> bool:
    """Return whether a node's target is an asynchronous collective, or the wait for one."""
    return getattr(target, "namespace", "") == NAMESPACE


def wait_time(node: Node, order: Mapping[Node, int]) -> float:
    """Return when a collective is over: at the last wait on one of its results."""
    times: list[float] = []
    pending = list(node.users)
    while pending:
        user = pending.pop()
        if user.target is operator.getitem:
            pending.extend(user.users)
        else:
            times.append(order[user] if WAIT in str(user.target) else END)
    return max(times, default=END)
