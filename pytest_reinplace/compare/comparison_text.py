"""A comparison as text: for a terminal, and as Markdown for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from ..base.markdown_cell import in_code, table_row, unmarked
from ..base.visible import brief, visible
from ..base.wording import plural
from . import figure
from .clones import told
from .comparison import Comparison, Row

_NAMES = 20
# Of a sentence: it may name two files, by their whole paths.
_SENTENCE = 1000
# GitHub takes 65,536 characters in a comment.
MOST_CHARACTERS = 60_000
# What is told of clones, and the heading: what is counted, and what follows.
_CLONES = {
    "new": ("new clone", ""),
    "moved": ("moved clone", ""),
    "gone": ("clone", " gone"),
    "reason": ("clone", " for another reason"),
}


def text(comparison: Comparison) -> Iterator[str]:
    """Yield the lines for a terminal: the table, what became of clones, and which limits are exceeded."""
    changed, metrics = changed_rows(comparison), comparison.metrics
    yield f"{visible(comparison.old_name)} → {visible(comparison.new_name)}"
    yield from (visible(remark, _SENTENCE) for remark in comparison.remarks)
    if changed:
        cells = [["test", *map(figure.wording_of, metrics)]]
        cells += [[visible(row.nodeid), *row_cells(row, metrics)] for row in changed]
        cells.append(total_cells(comparison))
        yield from aligned(cells)
    yield unchanged_text(comparison, len(changed))
    for row in comparison.rows:
        yield from (f"{visible(row.nodeid)}: {visible(remark)}" for remark in (*row.remarks, *row.advice))
    for title, clones in clone_lists(comparison):
        yield f"{title}:"
        yield from _some([f"{brief(nodeid)}: {visible(text, _SENTENCE)}" for nodeid, text in clones])
    for title, names in test_lists(comparison):
        yield f"{title}:"
        yield from _some([brief(name) for name in names])
    over = over_limit(comparison)
    if over:
        yield "over the limit:"
        for nodeid, sentence in over:
            yield f"  {visible(nodeid)}: {visible(sentence)}" if nodeid else f"  {visible(sentence)}"
    if comparison.limits:
        yield verdict_text(comparison)


def markdown(comparison: Comparison, most: int = MOST_CHARACTERS) -> str:
    """Return the same as Markdown, at most about ``most`` characters; what is over a limit comes first."""
    mark = "" if not comparison.limits else " ✅" if comparison.passed else " ❌"
    old, new = map(in_code, _titles(comparison.old_name, comparison.new_name))
    parts = [f"## Reinplacing: {old} → {new}{mark}\n"]
    parts += [f"{unmarked(remark, _SENTENCE)}\n" for remark in comparison.remarks]
    if comparison.limits:
        parts.append(f"{unmarked(verdict_text(comparison))}\n")
    over = [(f"{in_code(n)}: " if n else "") + unmarked(s, _SENTENCE) for n, s in over_limit(comparison)]
    if over:
        parts.append("### Over the limit\n\n" + fitting([f"- {line}" for line in over], most // 4) + "\n")
    for title, clones in clone_lists(comparison):
        lines = [f"- {in_code(nodeid)}: {unmarked(text, _SENTENCE)}" for nodeid, text in clones]
        parts.append(f"### {title}\n\n{fitting(lines, most // 12)}\n")
    parts += [f"### {title}\n\n{_bullets(names, most // 15)}\n" for title, names in test_lists(comparison)]
    changed, metrics = changed_rows(comparison), comparison.metrics
    if changed:
        heads = ["test", *map(figure.wording_of, metrics)]
        rows = [table_row([in_code(row.nodeid), *row_cells(row, metrics)]) for row in changed]
        head = [table_row(heads), "|" + " --- |" * len(heads), table_row(total_cells(comparison))]
        left = most - sum(map(len, parts)) - sum(map(len, head)) - 2000
        parts.append("\n".join([*head, fitting(rows, left)]) + "\n")
    remarks = [
        f"- {in_code(row.nodeid)}: {unmarked(remark)}"
        for row in comparison.rows
        for remark in (*row.remarks, *row.advice)
    ]
    if remarks:
        parts.append(fitting(remarks, max(most - sum(map(len, parts)) - 500, 0)) + "\n")
    parts.append(f"{unchanged_text(comparison, len(changed))}\n")
    return "\n".join(parts)


def _titles(*names: str) -> Sequence[str]:
    """Return how reports are called in a heading: without folder and ending, where that tells them apart."""
    short = [PurePath(name).name.removesuffix(".json") for name in names]
    return short if len(set(short)) == len(names) and all(short) else names


def changed_rows(comparison: Comparison) -> list[Row]:
    """Return the rows that are shown, those over a limit first."""
    rows = [row for row in comparison.rows if row.changed or row.excesses or row.clones]
    return sorted(rows, key=lambda row: (not row.excesses, row.nodeid))


def row_cells(row: Row, metrics: Iterable[str]) -> list[str]:
    """Return the figures of a test, before and now."""
    return [figure.change(metric, row.old.get(metric), row.new.get(metric)) for metric in metrics]


def total_cells(comparison: Comparison) -> list[str]:
    """Return the last row of the table of figures."""
    head = f"total of {plural(len(comparison.rows), 'test')}"
    return [head, *(figure.change(metric, *comparison.total(metric)) for metric in comparison.metrics)]


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose columns stand below each other."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def unchanged_text(comparison: Comparison, changed: int) -> str:
    """Return how many tests are the same, of which ``changed`` are shown as changed."""
    same = len(comparison.rows) - changed
    return f"{plural(len(comparison.rows), 'test')} in both reports, {same} unchanged"


def clone_lists(comparison: Comparison) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield what became of clones, by heading; new ones that are over a limit are told there."""
    for kind, (noun, rest) in _CLONES.items():
        rows = [row for row in comparison.rows if not row.refused or kind in ("gone", "reason")]
        found = [(row.nodeid, [one for one in row.clones if one.kind == kind]) for row in rows]
        lines = [(nodeid, text) for nodeid, changes in found for _, text in told(changes)]
        if lines:
            count = sum(len(changes) for _, changes in found)
            yield f"{plural(count, noun)}{rest}", lines


def test_lists(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Yield the tests that are in one report only, and those that improved, by heading."""
    if comparison.added:
        yield f"{plural(len(comparison.added), 'new test')}, not compared", list(comparison.added)
    if comparison.removed:
        yield f"{plural(len(comparison.removed), 'removed test')}, not compared", list(comparison.removed)
    better = [row.nodeid for row in comparison.rows if row.improved]
    if better:
        yield f"{plural(len(better), 'test')} improved; update the baseline", better


def _some(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in lines[:_NAMES])
    if len(lines) > _NAMES:
        yield f"  and {len(lines) - _NAMES} more"


def _bullets(names: Sequence[str], budget: int) -> str:
    kept = fitting([f"- {in_code(name)}" for name in names[:_NAMES]], budget)
    left = len(names) - _NAMES
    return f"{kept}\n\nand {left} more" if left > 0 else kept


def over_limit(comparison: Comparison) -> list[tuple[str, str]]:
    """Return what is over a limit: the test, empty for the comparison as a whole, and a sentence."""
    rows = [(row.nodeid, excess) for row in comparison.rows for excess in row.excesses]
    return [*(("", failure) for failure in comparison.failures), *rows]


def verdict_text(comparison: Comparison) -> str:
    """Return whether it is within the limits, and what became of each."""
    if comparison.passed:
        bounds = comparison.bounds.items()
        return f"within the limits {', '.join(t if b == 'held' else f'{t} ({b})' for t, b in bounds)}"
    limits = ", ".join(f"{text} {bound}" for text, bound in comparison.bounds.items())
    tests = sum(1 for row in comparison.rows if row.excesses)
    count = plural(tests, "test") if tests else "the comparison is"
    return f"{count} over a limit ({limits})"


def fitting(lines: Sequence[str], budget: int) -> str:
    """Return as many lines as fit, and how many did not."""
    kept = 0
    while kept < len(lines) and budget >= len(lines[kept]) + 1:
        budget -= len(lines[kept]) + 1
        kept += 1
    left = len(lines) - kept
    # A line of its own: below a table it ends the table.
    return "\n".join([*lines[:kept], *(["", f"and {left} more"] if left else [])])
