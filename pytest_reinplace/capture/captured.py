"""One graph that was compiled, and what the pass under test did to it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..base import wording

if TYPE_CHECKING:
    from ..base.lowering_copy import LoweringCopy
    from ..passes import Report
    from ..picture.picture import Picture
    from .verified import Verified


@dataclasses.dataclass(frozen=True, slots=True)
class CapturedGraph:
    """One compiled graph.

    Args:
        id: direction and compile id, ``"[fw 0/1]"``; ``0/1`` is the first recompilation of the first frame.
        report: what the pass under test decided.
        suspicious: labels that it wrote in place although our analysis forbids it.
        problem: why the graph could not be judged; empty when it was.
        before: the functional graph as text.
        after: the rewritten graph as text.
        pass_name: the pass under test.
        backend: ``"inductor"`` or ``"graph"``; empty for a pass that was applied by hand.
        picture: what a page shows of it; ``None`` where no page was asked for.
        verified: what checking it against the contract gave; ``None`` where that was not asked for, and
            nothing is suspicious.
        offered: how many candidates and copies into inputs the functional graph held. Not all are in the
            report: a copy into an input that is the only way to write it is no clone.
        least_bytes: what the graph reads and writes at least, in one call.
        applications: what passes and rules did to it, as plain data; ``None`` where that was not followed.
        unfollowed: why that is not known, or was not checked, although it was asked for; else empty.
        copies: the copies that Inductor makes of values that have a place, those that the program means as
            well, with those of its subgraphs; ``None`` where it was not lowered, and of a subgraph.
        unlowered: why they are not known; else empty.
    """

    id: str
    report: Report
    suspicious: tuple[str, ...] = ()
    problem: str = ""
    before: str = ""
    after: str = ""
    pass_name: str = ""
    backend: str = ""
    picture: Picture | None = None
    verified: Verified | None = None
    offered: int = 0
    least_bytes: int = 0
    applications: tuple[dict[str, Any], ...] | None = None
    unfollowed: str = ""
    copies: tuple[LoweringCopy, ...] | None = None
    unlowered: str = ""

    @property
    def suspicion(self) -> str:
        """What is to be said where the pass wrote what our analysis forbids; empty elsewhere."""
        verified = self.verified.to_dict() if self.verified else None
        return wording.suspicion(f"graph {self.id}", self.suspicious, verified)

    def to_dict(self) -> dict[str, Any]:
        """Return the graph's report as JSON-ready data, without the texts and the picture."""
        return {
            **self.report.to_dict(),
            "graph": self.id,
            "suspicious": list(self.suspicious),
            "problem": self.problem,
            "pass": self.pass_name,
            "backend": self.backend,
            "verified": self.verified.to_dict() if self.verified else None,
            **self._followed(),
            **self._lowered(),
        }

    def _followed(self) -> dict[str, Any]:
        if self.applications is None and not self.unfollowed:
            return {}
        return {"applications": list(self.applications or ()), "unfollowed": self.unfollowed}

    def _lowered(self) -> dict[str, Any]:
        if self.copies is None:
            return {"unlowered": self.unlowered} if self.unlowered else {}
        return {"copies": [copy.to_dict() for copy in self.copies]}
