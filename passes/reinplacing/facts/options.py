"""What a user may choose about the pass."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_args

from ...errors import ReinplaceError
from .target import NODE_BY_NODE, Target

Policy = Literal["memory", "peak", "speed"]
Ordering = Literal["free", "keep"]
Stage = Literal["reinplace", "post_grad"]


@dataclasses.dataclass(frozen=True, slots=True)
class Caller:
    """Who takes what a graph returns, as far as it is known. Reasons are told by it, nothing is decided.

    Args:
        saved: the nodes, by name, that are returned for the backward graph alone.
        graph_break: the line, ``"file:line"``, at which the program goes on outside of the graph; empty where
            the graph ends with its function.
    """

    saved: frozenset[str] = frozenset()
    graph_break: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How a graph is decided.

    Args:
        policy: what to prefer where writing in place and computing functionally, fused with what makes
            or uses the result, cost different things (see ``reinplacing/model/fused.py``).
        order: ``"free"``: readers of an old value may move in front of the write that replaces it, where
            that saves a copy; ``"keep"``: the nodes keep their order.
        target: what runs the rewritten graph.
        caller: who takes what the graph returns.

    Raises:
        ReinplaceError: a value that does not exist.
    """

    policy: Policy = "memory"
    order: Ordering = "free"
    target: Target = NODE_BY_NODE
    caller: Caller = Caller()

    def __post_init__(self) -> None:
        check_choice("policy", self.policy, Policy)
        check_choice("order", self.order, Ordering)


def check_choice(name: str, value: object, known: Any) -> None:
    """Raise a ``ReinplaceError`` for a value that is none of a ``Literal``'s."""
    if value not in get_args(known):
        choices = " or ".join(map(repr, get_args(known)))
        raise ReinplaceError(f"expected {name} to be {choices}, got {value!r}")


DEFAULT = Options()
