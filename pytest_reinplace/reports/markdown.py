"""The report as Markdown, for a comment on a pull request and for ``$GITHUB_STEP_SUMMARY``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..base.fit import TIMES
from ..base.markdown_cell import in_code, table_row, unmarked
from ..base.wording import bytes_of, plural
from ..record.counts import counts_of
from . import held, lowered, measured, pass_by_pass
from .clone import Clone, clones_of
from .finding import checked, findings_of
from .groups import Group, groups_of

# GitHub takes 65,536 characters in a comment.
MOST_CHARACTERS = 60_000
_LARGEST = 10
_FINDINGS = 10
_COUNTS = ("graphs", "candidates", "reinplaced", "cloned")
_HEADS = ("graphs", "candidates", "in place", "cloned", "bytes cloned")
_GROUP = ("clone", "bytes", "count", "where", "why", "test")
_CLONE = ("clone", "bytes", "where", "why", "test")


def markdown(report: Mapping[str, Any], most: int = MOST_CHARACTERS) -> str:
    """Return the report: totals, the clones by line and reason, and folded below every test and every clone.

    A hint stands once for each line and reason.

    Args:
        report: the document.
        most: characters that it may have, at least 20,000; rows that are left out are counted.
    """
    clones = clones_of(report)
    groups = groups_of(clones)
    found = measured.results(report)
    parts = [_totals(report), *_findings(report), *measured.told(found)]
    parts += _largest(groups[:_LARGEST], len(groups))
    folded = list(_folded_parts(report, clones, groups))
    for i, part in enumerate(folded):
        # What one part leaves is shared by those that follow, so that no part takes the room of all others.
        left = most - sum(len(part) + 1 for part in parts)
        parts.append(part(left // (len(folded) - i)))
    return "\n".join(parts)


def _folded_parts(
    report: Mapping[str, Any], clones: Sequence[Clone], groups: Sequence[Group]
) -> Iterator[Callable[[int], str]]:
    """Yield what is folded: each part takes how many characters it may have."""
    tests = sorted(report["tests"].items(), key=lambda pair: (-pair[1]["clone_bytes"], pair[0]))
    if tests:
        rows = [_test_row(test, data) for test, data in tests]
        yield partial(_folded, plural(len(tests), "test"), ("test", "outcome", *_HEADS), rows)
    if len(groups[:_LARGEST]) < len(clones):
        yield partial(_folded, plural(len(clones), "clone"), _CLONE, _clone_rows(clones, groups[_LARGEST:]))
    if copied := lowered.copied_in(report):
        yield partial(_folded, lowered.title(copied), lowered.HEADS, map(_copied_row, copied))
    if calls := held.calls_in(report):
        yield partial(_folded, held.title(calls), ("test", *held.FIGURES, held.NOTE), map(_call_row, calls))
    if pass_by_pass.is_recorded(report):
        yield partial(_passes, report)
    if found := measured.results(report):
        yield partial(_folded, f"measured: {len(found)}", measured.heads(found), measured.rows(found))


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


def _findings(report: Mapping[str, Any]) -> Iterable[str]:
    found = findings_of(report)
    parts = [_verified(report)] if any(checked(report)) else []
    lines = [f"- {in_code(one.test)}: {in_code(one.whole)}" for one in found[:_FINDINGS]]
    if len(found) > _FINDINGS:
        lines.append(f"- and {len(found) - _FINDINGS} more")
    parts += ["\n".join(lines)] if lines else []
    if parts:
        yield "### Findings\n\n" + "\n\n".join(parts) + "\n"


def _verified(report: Mapping[str, Any]) -> str:
    count, wrong, unknown = checked(report)
    return f"Compared on their first calls: {plural(count, 'graph')}, {wrong} wrong, {unknown} not checked."


def _passes(report: Mapping[str, Any], budget: int) -> str:
    applied = pass_by_pass.applied_in(report)
    title = pass_by_pass.title(applied)
    if len(applied) > pass_by_pass.MOST_SINGLY:
        rows = [table_row([*one.cells[:-1], in_code(one.cells[-1])]) for one in pass_by_pass.by_pass(applied)]
        return _folded(title, pass_by_pass.HEADS, rows, budget)
    rows = [table_row([in_code(one.line), in_code(one.test)]) for one in applied]
    return _folded(title, ("application", "test"), rows, budget) if rows else f"{title}\n"


def _largest(shown: Sequence[Group], count: int) -> Iterable[str]:
    if shown:
        title = "Clones by line and reason" + (f": {len(shown)} of {count}" if count > len(shown) else "")
        yield f"### {title}\n\n{_table(_GROUP, map(_group_row, shown))}"


def _test_row(test: str, data: Mapping[str, Any]) -> str:
    return table_row([in_code(test), data["outcome"], *_numbers(counts_of(data["graphs"]))])


def _group_row(group: Group) -> str:
    more = len(group.labels) - 1
    label = in_code(group.labels[0]) + (f" and {more} more" if more else "")
    test = in_code(group.tests[0]) if len(group.tests) == 1 else plural(len(group.tests), "test")
    why = _why(group.sentence, group.blockers, group.hint)
    cells = [label, bytes_of(group.nbytes), f"{len(group.clones)}{TIMES}", in_code(group.where), why, test]
    return table_row(cells)


def _copied_row(group: lowered.Copied) -> str:
    first = group.copies[0]
    test = in_code(group.tests[0]) if len(group.tests) == 1 else plural(len(group.tests), "test")
    cells = [in_code(first.label), bytes_of(group.nbytes), f"{len(group.copies)}{TIMES}", first.cause]
    return table_row([*cells, in_code(group.where), _why(first.sentence, "", first.hint), test])


def _call_row(call: held.Call) -> str:
    test = in_code(call.test) + (f", {call.which}" if call.which else "")
    return table_row([test, *call.cells(), unmarked(call.note)])


def _clone_rows(clones: Iterable[Clone], hinted: Iterable[Group]) -> Iterable[str]:
    """Yield a row for each clone, with a hint at the first one of each of the groups."""
    hints = {id(group.clones[0]): group.hint for group in hinted}
    for clone in clones:
        why = _why(clone.sentence, clone.blockers, hints.get(id(clone), ""))
        where = in_code(clone.source or clone.data["node"])
        yield table_row(
            [in_code(clone.data["label"]), bytes_of(clone.nbytes), where, why, in_code(clone.test)]
        )


def _why(sentence: str, blockers: str, hint: str) -> str:
    why = unmarked(sentence)
    why += f"; held back by {in_code(blockers)}" if blockers else ""
    return why + (f"<br>hint: {unmarked(hint)}" if hint else "")


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
