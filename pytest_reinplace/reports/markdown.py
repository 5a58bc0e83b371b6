"""The report as Markdown, for a comment on a pull request and for ``$GITHUB_STEP_SUMMARY``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.markdown_cell import in_code, table_row, unmarked
from ..base.wording import bytes_of, plural
from ..record.counts import counts_of
from . import measured
from .clone import Clone, clones_of, remarks_of, title_of

# GitHub takes 65,536 characters in a comment.
MOST_CHARACTERS = 60_000
_LARGEST = 10
_REMARKS = 10
_COUNTS = ("graphs", "candidates", "reinplaced", "cloned")
_HEADS = ("graphs", "candidates", "in place", "cloned", "bytes cloned")


def markdown(report: Mapping[str, Any], most: int = MOST_CHARACTERS) -> str:
    """Return the report: totals, the ten largest clones, and folded below them every test and every clone.

    Args:
        report: the document.
        most: characters that it may have, at least 20,000; rows that are left out are counted.
    """
    clones = clones_of(report)
    found = measured.results(report)
    parts = [_totals(report), *measured.told(found), *_remarks(report), *_largest(clones)]
    tests = sorted(report["tests"].items(), key=lambda pair: (-pair[1]["clone_bytes"], pair[0]))
    left = most - sum(len(part) + 1 for part in parts)
    if tests:
        rows = (_test_row(test, data) for test, data in tests)
        # A half for the tests, so that many of them leave room for the clones.
        budget = left // 2 if len(clones) > _LARGEST else left
        parts.append(_folded(plural(len(tests), "test"), ("test", "outcome", *_HEADS), rows, budget))
    if len(clones) > _LARGEST:
        left = most - sum(len(part) + 1 for part in parts)
        rows = (_clone_row(clone) for clone in clones)
        parts.append(_folded(plural(len(clones), "clone"), _CLONE, rows, left))
    if found:
        left = most - sum(len(part) + 1 for part in parts)
        parts.append(_folded(f"measured: {len(found)}", measured.HEADS, measured.rows(found), left))
    return "\n".join(parts)


_CLONE = ("clone", "bytes", "where", "why", "test")


def _totals(report: Mapping[str, Any]) -> str:
    total = report["total"]
    versions = [f"{name} {version}" for name, version in sorted(report["versions"].items()) if version]
    head = "## Reinplacing\n"
    if not total["tests"]:
        return f"{head}\nNo test was captured: none ran `torch.compile`.\n"
    table = _table(("tests", *_HEADS), [table_row([str(total["tests"]), *_numbers(total)])])
    return f"{head}\n{table}\n<sub>{unmarked(', '.join(versions))}</sub>\n"


def _numbers(counts: Mapping[str, Any]) -> list[str]:
    return [*(str(counts[name]) for name in _COUNTS), bytes_of(counts["clone_bytes"])]


def _remarks(report: Mapping[str, Any]) -> Iterable[str]:
    found = remarks_of(report)
    if not found:
        return
    lines = [f"- {in_code(test)}: {in_code(text)}" for test, text in found[:_REMARKS]]
    if len(found) > _REMARKS:
        lines.append(f"- and {len(found) - _REMARKS} more")
    yield "### To look at\n\n" + "\n".join(lines) + "\n"


def _largest(clones: Sequence[Clone]) -> Iterable[str]:
    if clones:
        shown = clones[:_LARGEST]
        yield f"### {title_of(len(shown), len(clones))}\n\n{_table(_CLONE, map(_clone_row, shown))}"


def _test_row(test: str, data: Mapping[str, Any]) -> str:
    return table_row([in_code(test), data["outcome"], *_numbers(counts_of(data["graphs"]))])


def _clone_row(clone: Clone) -> str:
    why = unmarked(clone.sentence)
    if clone.blockers:
        why += f"; held back by {in_code(clone.blockers)}"
    if clone.data["hint"]:
        why += f"<br>hint: {unmarked(clone.data['hint'])}"
    where = in_code(clone.source) if clone.source else in_code(clone.data["node"])
    return table_row(
        [
            in_code(clone.data["label"]),
            bytes_of(clone.nbytes),
            where,
            why,
            in_code(clone.test),
        ]
    )


def _folded(summary: str, heads: Sequence[str], rows: Iterable[str], budget: int) -> str:
    """Return a table that is unfolded by a click, with as many rows as a budget of characters allows."""
    found = list(rows)
    begin = f"<details><summary>{summary}</summary>\n\n"
    end = f"\nand {len(found)} more\n\n</details>\n"
    left = budget - len(begin) - len(_table(heads, [])) - len(end)
    kept = 0
    while kept < len(found) and len(found[kept]) < left:
        left -= len(found[kept]) + 1
        kept += 1
    if kept < len(found):
        end = f"\nand {len(found) - kept} more\n\n</details>\n"
    else:
        end = "\n</details>\n"
    return f"{begin}{_table(heads, found[:kept])}{end}"


def _table(heads: Sequence[str], rows: Iterable[str]) -> str:
    lines = [table_row(heads), "|" + " --- |" * len(heads), *rows]
    return "\n".join(lines) + "\n"
