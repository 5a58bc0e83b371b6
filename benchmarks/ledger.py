"""What one run has measured, how it grows, and the tables that say so."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

_FITTED = 3  # the exponent is fitted over so many of the largest sizes


@dataclasses.dataclass(slots=True)
class Row:
    """One graph, measured. Times are CPU seconds; ``None`` is what was not measured.

    Args:
        size: the number of writes.
        nodes: the nodes of the graph.
        ours: of our pass.
        stock: of Inductor's pass with its decompositions.
        core: of the core of Inductor's pass alone.
        peak: bytes that our pass allocates at most.
        left: copies that our pass leaves.
        stock_left: copies that Inductor's pass leaves.
    """

    size: int
    nodes: int
    ours: float | None = None
    stock: float | None = None
    core: float | None = None
    peak: int | None = None
    left: int | None = None
    stock_left: int | None = None


@dataclasses.dataclass(slots=True)
class Ledger:
    """All rows of a run.

    Args:
        limit: CPU seconds beyond which Inductor's side of a family is not tried.
    """

    limit: float
    families: dict[str, dict[int, Row]] = dataclasses.field(default_factory=dict)
    large: dict[str, Row] = dataclasses.field(default_factory=dict)

    def row(self, family: str, size: int, nodes: int) -> Row:
        """Return the row of a graph, a new one when there is none yet."""
        return self.families.setdefault(family, {}).setdefault(size, Row(size, nodes))

    def expected(self, family: str, size: int) -> float:
        """Return how long Inductor will take by what it took on smaller graphs; 0 before there are any."""
        known = [(r.size, r.stock) for r in self.families.get(family, {}).values() if r.stock is not None]
        if not known:
            return 0.0
        last, seconds = known[-1]
        growth = exponent(known) if len(known) > 1 else 2.0
        return seconds * math.pow(size / last, 2.0 if math.isnan(growth) else max(1.0, growth))

    def exponents(self, family: str) -> dict[str, float]:
        """Return the growth exponents of a family, by column; not a number where sizes are missing."""
        rows = self.families[family].values()
        columns = ("ours", "stock", "core", "peak")
        return {
            c: exponent([(r.nodes, v) for r in rows if (v := getattr(r, c)) is not None]) for c in columns
        }


def exponent(points: Iterable[tuple[float, float]]) -> float:
    """Return the slope of ``log y`` over ``log x`` of the last points, by least squares."""
    chosen = [(math.log(x), math.log(y)) for x, y in list(points)[-_FITTED:] if y > 0]
    if len(chosen) < 2:
        return math.nan
    mean_x = sum(x for x, _ in chosen) / len(chosen)
    mean_y = sum(y for _, y in chosen) / len(chosen)
    spread = sum((x - mean_x) ** 2 for x, _ in chosen)
    return sum((x - mean_x) * (y - mean_y) for x, y in chosen) / spread if spread else math.nan


_HEAD = ("n", "nodes", "ours s", "Inductor s", "its core s", "ratio", "peak MiB", "copies left", "Inductor's")


def table(family: str, text: str, ledger: Ledger) -> list[str]:
    """Return the table of a family, with the exponents in its last line."""
    lines = [f"{family}: {text}", _line(_HEAD)]
    for row in ledger.families[family].values():
        ratio = row.stock / row.ours if row.stock and row.ours else None
        stock = _number(row.stock) if row.stock is not None else f"> {ledger.limit:g}?"
        peak = f"{row.peak / 2**20:.1f}" if row.peak is not None else "-"
        cells = (_number(row.ours), stock, _number(row.core), f"{ratio:.1f}" if ratio else "-", peak)
        lines.append(_line((row.size, row.nodes, *cells, _count(row.left), _count(row.stock_left))))
    grown = {k: "-" if math.isnan(v) else f"{v:.2f}" for k, v in ledger.exponents(family).items()}
    lines.append(
        _line(("", "exponent", grown["ours"], grown["stock"], grown["core"], "", grown["peak"], "", ""))
    )
    return lines


def large_table(ledger: Ledger) -> list[str]:
    """Return the CPU seconds of our pass on one large graph of each family."""
    lines = [_line(("family", "nodes", "ours s"), first=18)]
    lines += [_line((name, r.nodes, _number(r.ours)), first=18) for name, r in ledger.large.items()]
    return lines


def _line(cells: Sequence[object], first: int = 6) -> str:
    return str(cells[0]).ljust(first) + "".join(str(cell).rjust(12) for cell in cells[1:])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)
