"""What the programs of a compiled entry hold, and the least that they must: by calls that nobody times."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base import launch
from ..copies.allowed import Told

if TYPE_CHECKING:
    from ..lowered.calls import Calls
    from ..lowered.memory import Memory


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """What a call of an entry holds.

    Args:
        memory: what its programs hold; ``None`` where that is not known.
        problem: why it is not known, or has no lower bound; else empty.
        is_odd: whether there should be one, so that the problem is worth telling.
    """

    memory: Memory | None = None
    problem: str = "nobody looked at what it holds"
    is_odd: bool = False

    @property
    def bound(self) -> int | None:
        """What the programs must hold at some time; ``None`` where that is not known."""
        return self.memory.bound if self.memory is not None and not self.problem else None

    def excess(self, most: float, where: str) -> Told:
        """Return in how far it holds more than ``most`` times its lower bound, as the file ``where`` says."""
        from ..lowered import over_bound

        if self.problem or self.memory is None:
            return Told((f"the peak cannot be held against its lower bound: {self.problem}",))
        lines = [*over_bound.excess([self.memory], most)]
        if not lines:
            return Told()
        advice = f"hold less of what is listed, or raise {over_bound.LIMIT} in {where}"
        return Told((lines[0],), (*lines[1:], advice))


def held(calls: Calls, run: Callable[[], Any], restore: Callable[[], None], device: str) -> Held:
    """Return what a call holds, by two calls or a few more; what the last one wrote stays.

    Args:
        calls: in whose ``lowering`` it was compiled.
        run: makes the call; it has been compiled before.
        restore: puts back what the call has written.
        device: ``"cpu"`` or ``"cuda"``, whose memory it is.
    """
    import torch

    from ..lowered import over_bound
    from ..lowered.memory import memory

    if launch.processes() > 1:  # all must call equally often, and how often depends on what each sees
        return Held(problem="several processes run it")
    restore()
    try:
        found = memory(calls, run, restore, device)[1]
    except (torch.OutOfMemoryError, torch.AcceleratorError):
        raise
    except Exception as error:  # noqa: BLE001 - what else is measured is worth more than this figure
        words = " ".join(str(error).split())
        return Held(problem=f"{type(error).__name__}: {words[:200]}", is_odd=True)
    problem = over_bound.unknown([found], "inductor")
    return Held(found, problem, is_odd=bool(problem and found.programs))
