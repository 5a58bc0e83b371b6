"""What the markers of one test say, as data."""

from __future__ import annotations

import dataclasses

from ..base.tolerance import Tolerance


@dataclasses.dataclass(frozen=True, slots=True)
class Marked:
    """What the markers of a test say; ``None`` where they say nothing."""

    device: str | None = None
    backend: str | None = None
    pass_: str | None = None
    max_clones: int | None = None
    max_clone_bytes: int | None = None
    max_copies: int | None = None
    max_copy_bytes: int | None = None
    max_peak_bytes: int | None = None
    max_peak_over_bound: float | None = None
    tolerance: Tolerance | None = None

    @property
    def has_limits(self) -> bool:
        """Whether the test may fail because of what it cloned, copied, held or left uncompared."""
        limits = self.limits_clones or self.limits_copies
        others = self.max_peak_bytes, self.max_peak_over_bound, self.tolerance
        return limits or any(one is not None for one in others)

    @property
    def limits_clones(self) -> bool:
        """Whether the test may fail because of what it cloned."""
        return self.max_clones is not None or self.max_clone_bytes is not None

    @property
    def limits_copies(self) -> bool:
        """Whether the test may fail because of what lowering copied."""
        return self.max_copies is not None or self.max_copy_bytes is not None
