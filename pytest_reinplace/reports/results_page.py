"""The page of a corpus that was measured: a plot of all entries, and a table for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..base.markdown_cell import in_code, table_row, unmarked
from ..compare.figure import shown
from ..measure import table
from ..measure.result import Result
from ..record.figures import STOCK, Measurement
from ..record.paired import ratio
from . import template
from .measured import told

_WIDTH, _LEFT, _ROW, _TOP = 860, 210, 22, 46
_MOST = 1.5  # times Inductor's figure, at the right edge


def page(results: Sequence[Result], versions: Mapping[str, str], plot: str, about: str) -> str:
    """Return the page.

    Args:
        results: what was measured.
        versions: what it was measured with, by package.
        plot: the name of the plot's file.
        about: the command that measured; may be empty.
    """
    found = sorted(results, key=lambda result: result.measurement.entry)
    devices = sorted({result.measurement.device for result in found})
    copies = [r.measurement.copy_bandwidth for r in found if r.measurement.copy_bandwidth]
    lines = [
        "# Results of the corpus",
        "",
        f"{len(found)} entries on {unmarked(', '.join(devices))}, with "
        f"{unmarked(', '.join(f'{name} {version}' for name, version in versions.items()))}."
        + (f" A plain copy moves {max(copies) / 1e9:.0f} GB/s there." if copies else ""),
        "",
        *(["```console", f"$ {about}", "```", ""] if about else []),
        _LEGEND.format(bound=_BOUND if any(_bound_of(one) is not None for one in found) else ""),
        "",
        f"![peak memory and runtime by Inductor's]({plot})",
        "",
        *_totals(found),
        *_bounds(found),
        *told([(result.measurement.entry, result) for result in found]),
        "## Entry by entry",
        "",
    ]
    for result in found:
        lines += [f"### {unmarked(result.measurement.entry)}", "", *_table(result.measurement), ""]
    return "\n".join(lines).rstrip() + "\n"


_LEGEND = """\
Each entry runs eagerly, with Inductor's own pass, and with ours (`exact`), in rounds that interleave them.

* *peak*: the most memory above the level before the call, exact to the byte;
{bound}* *runtime*: the median of the rounds;
* *beside*: the runtime divided by that of Inductor's pass in the same rounds, with bounds of 99.9 %;
* *moves*: the bytes that the kernels read and write, as Inductor counts them: each operand as a whole;
* *least*: the bytes that any compiler has to move: each input read once, each result written once. What the
  program's own kernels update is not counted;
* *of copy*: the bandwidth that *moves* reaches, as a part of a plain copy's. It is above 100 % where an
  operator reads only a part of an operand, or finds it in a cache;
* *compile*: the first call. Inductor's own comes first and pays for what both import;
  `benchmarks.compile_seconds` compares the two."""


_BOUND = """\
* *bound*: the least that the programs of our pass must hold at some time, whatever the order of their lines;
* *over*: the peak divided by that;
"""
_NEAR = 1.1


def _bound_of(result: Result) -> int | None:
    return result.measurement.tested.lower_bound


def _table(found: Measurement) -> Iterator[str]:
    heads = table.columns([found])
    yield table_row(heads)
    yield "|" + " --- |" * len(heads)
    for first, *rest in table.rows(found, heads):
        yield table_row([in_code(first), *rest])


def _totals(results: Sequence[Result]) -> Iterator[str]:
    """Yield in how many entries the pass under test needs less, as much, or more than Inductor's."""
    both = [r.measurement for r in results if STOCK in r.measurement.sides]
    if not both:
        return
    peaks = [(m.tested.peak_bytes, m.sides[STOCK].peak_bytes) for m in both]
    clones = [(m.tested.clone_bytes or 0, m.sides[STOCK].clone_bytes or 0) for m in both]
    times = [ratio(m.tested.times, m.sides[STOCK].times) for m in both]
    sure = [one for one in times if one is not None]
    yield "| beside Inductor's pass | less | equal or not told apart | more |"
    yield "| --- | --- | --- | --- |"
    for name, pairs in (("clone bytes", clones), ("peak memory", peaks)):
        less, more = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
        yield f"| {name} | {less} | {len(pairs) - less - more} | {more} |"
    less, more = sum(one.high < 1 for one in sure), sum(one.low > 1 for one in sure)
    yield f"| runtime | {less} | {len(sure) - less - more} | {more} |"
    saved = sum(b - a for a, b in clones)
    yield ""
    shorter = shown("clone_bytes", max(saved, 0))
    yield f"Clones that Inductor's pass makes and ours does not, in one call of each: {shorter}."
    yield ""


def _bounds(results: Sequence[Result]) -> Iterator[str]:
    """Yield how many entries hold what they must, where that is known."""
    known = [r.measurement.tested for r in results if _bound_of(r) is not None]
    if known:
        exact = sum(side.peak_bytes == side.lower_bound for side in known)
        near = sum(side.peak_bytes <= _NEAR * (side.lower_bound or 0) for side in known)
        yield f"Entries whose lower bound of the peak is known: {len(known)}. Just that is held by {exact},"
        yield f"at most {_NEAR} times that by {near}."
        yield ""


def plot(results: Sequence[Result]) -> str:
    """Return an SVG: for each entry its peak memory and its runtime by those of Inductor's pass."""
    rows: list[dict[str, object]] = []
    for result in sorted(results, key=lambda one: one.measurement.entry):
        found = result.measurement
        if STOCK not in found.sides:
            continue
        stock, times = found.sides[STOCK], ratio(found.tested.times, found.sides[STOCK].times)
        peak = found.tested.peak_bytes / stock.peak_bytes if stock.peak_bytes else 1.0
        y = _TOP + _ROW * len(rows)
        bars = [("peak", y + 2, peak)] + ([("time", y + 10, times.median)] if times else [])
        rows.append({"name": found.entry, "y": y, "bars": [_bar(*bar) for bar in bars]})
    height = _TOP + _ROW * len(rows) + 12
    marks = [{"x": _x(value), "text": f"{value:g}"} for value in (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5)]
    values = {"width": _WIDTH, "height": height, "left": _LEFT, "one": _x(1), "rows": rows, "marks": marks}
    return template.environment(__package__).get_template("results.jinja").render(**values) + "\n"


def _x(value: float) -> float:
    return round(_LEFT + (_WIDTH - _LEFT - 60) * min(value, _MOST) / _MOST, 1)


def _bar(kind: str, y: int, value: float) -> dict[str, object]:
    return {
        "kind": kind,
        "y": y,
        "width": round(_x(value) - _LEFT, 1),
        "text": f"{value:.2f}",
        "end": _x(value) + 4,
    }
