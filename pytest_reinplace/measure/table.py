"""What tables show of a measurement: a row for each side."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.fit import aligned
from ..compare.figure import shown
from ..record.figures import EAGER, STOCK, Measurement
from ..record.paired import ratio

_FIGURES = ("clones", "clone bytes", "peak", "runtime", "beside", "moves", "least", "of copy", "compile")
COLUMNS = ("side", *_FIGURES)


def rows(found: Measurement) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each side: eager, Inductor's pass, the pass under test.

    ``beside`` is the runtime by that of Inductor's pass in the same rounds, with the bounds that are sure;
    ``moves`` what Inductor counts that its kernels read and write, ``least`` what the program has to, and
    ``of copy`` which fraction of a plain copy's bandwidth the former is.
    """
    for name in filter(found.sides.__contains__, dict.fromkeys((EAGER, STOCK, found.pass_name))):
        side, fraction = found.sides[name], found.bandwidth_fraction(name)
        yield (
            name,
            "-" if side.clones is None else str(side.clones),
            "-" if side.clone_bytes is None else shown("clone_bytes", side.clone_bytes),
            shown("peak_bytes", side.peak_bytes),
            "-" if side.runtime is None else shown("runtime", side.runtime),
            _beside(found, name),
            "-" if side.moved_bytes is None else shown("peak_bytes", side.moved_bytes),
            "-" if side.least_bytes is None else shown("peak_bytes", side.least_bytes),
            "-" if fraction is None else f"{100 * fraction:.0f} %",
            "-" if side.compile_seconds is None else f"{side.compile_seconds:.1f} s",
        )


def _beside(found: Measurement, name: str) -> str:
    stock = found.sides.get(STOCK)
    times = ratio(found.sides[name].times, stock.times) if stock and name != STOCK else None
    return "-" if times is None else f"{times.median:.3f} ({times.low:.3f}-{times.high:.3f})"


def lines(found: Measurement) -> Iterator[str]:
    """Yield the table as text, aligned."""
    for row in aligned([COLUMNS, *rows(found)]):
        yield "  ".join(row)
