"""Why a candidate is cloned, as a decision records it."""

from __future__ import annotations

import dataclasses

from torch.fx import Node

from ...reason import Reason


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why a candidate is cloned.

    Args:
        reason: the condition that failed.
        blockers: the nodes that hold it back.
        culprits: accepted candidates of which cutting any one would lift the refusal.
    """

    reason: Reason
    blockers: tuple[Node, ...] = ()
    culprits: frozenset[int] = frozenset()
