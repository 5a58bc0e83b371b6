"""What the oracle finds out about many graphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from torch.fx import GraphModule

from ..fuzz.late_order import delayed
from ..reinplacing.run import reinplace
from ..report import Report
from ..strategies import random_graph
from .verdict import Pass, Verdict, judged


@dataclasses.dataclass(slots=True)
class Tally:
    """The verdicts of many graphs.

    Args:
        graphs: how many.
        wrong: seeds whose rewrite breaks the contract.
        above: seeds whose rewrite copies more than the cheapest one that keeps the order.
        removable: bytes that the cheapest rewrites that keep the order remove.
        removed: bytes that the pass removed of these.
        moved: graphs in which it copies less than any of them, because it moved readers.
        beyond: how many bytes less.
        nested: graphs that call subgraphs, held against the contract only: their bytes are not counted.
    """

    graphs: int = 0
    wrong: list[tuple[int, Verdict]] = dataclasses.field(default_factory=list)
    above: list[tuple[int, Verdict]] = dataclasses.field(default_factory=list)
    removable: int = 0
    removed: int = 0
    moved: int = 0
    beyond: int = 0
    nested: int = 0

    def add(self, seed: int, verdict: Verdict) -> None:
        """Count one graph."""
        self.graphs += 1
        if verdict.problem is not None:
            self.wrong.append((seed, verdict))
            return
        if not verdict.searched:
            self.nested += 1
            return
        self.removable += verdict.before - verdict.least
        self.removed += verdict.before - max(verdict.after, verdict.least)
        self.moved += verdict.after < verdict.least
        self.beyond += max(0, verdict.least - verdict.after)
        if verdict.after > verdict.least:
            self.above.append((seed, verdict))

    def extend(self, other: Tally) -> None:
        """Count the graphs of another tally, too."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    @property
    def aliased(self) -> int:
        """How many of the wrong graphs have right values and share storage differently."""
        return sum(v.problem == "alias" for _, v in self.wrong)

    @property
    def percentage(self) -> float:
        """Bytes removed, in per cent of those that any legal rewrite can remove that keeps the order.

        What moving readers saves beyond that is counted apart: nobody searched the optimum of all orders.
        """
        return 100.0 * self.removed / self.removable if self.removable else 100.0

    def __str__(self) -> str:
        return (
            f"graphs {self.graphs}  wrong {len(self.wrong) - self.aliased}  alias-wrong {self.aliased}  "
            f"bytes removable {self.removable}  removed {self.removed}  ({self._share})  "
            f"not optimal {len(self.above)}" + self._moves + self._nested
        )

    @property
    def _share(self) -> str:
        return f"{self.percentage:.2f} %" if self.removable else "-"

    @property
    def _moves(self) -> str:
        return f"  beyond the order as written {self.beyond} B in {self.moved}" if self.moved else ""

    @property
    def _nested(self) -> str:
        return f"  with subgraphs {self.nested}" if self.nested else ""


def tallied(
    seeds: Iterator[int] | Sequence[int],
    one_pass: Pass = reinplace,
    *,
    late: bool = False,
    wild: bool = False,
    **options: Any,
) -> Tally:
    """Judge the graphs of many seeds; with ``late``, written so that values are read as late as possible."""
    tally = Tally()
    for seed in seeds:
        graph = random_graph(seed, wild=wild)
        tally.add(seed, judged(delayed(graph) if late else graph, one_pass, **options))
    return tally


def kept(gm: GraphModule) -> Report:
    """Rewrite a graph and leave its nodes in their order."""
    return reinplace(gm, order="keep")


def compared(seeds: Sequence[int], *, late: bool, wild: bool = False) -> str:
    """Return what moving readers saves: the bytes that are copied with and without it."""
    before = fixed = free = moved = 0
    for seed in seeds:
        graph = random_graph(seed, wild=wild)
        graph = delayed(graph) if late else graph
        one, two = (judged(graph, p, optimum=False) for p in (kept, reinplace))
        before, fixed, free = before + one.before, fixed + one.after, free + two.after
        moved += two.after < one.after
    saved = 100.0 * (fixed - free) / fixed if fixed else 0.0
    return (
        f"graphs {len(seeds)}  bytes copied: as written {before}, order kept {fixed}, readers moved {free}  "
        f"({saved:.2f} % less)  in {moved} graphs"
    )
