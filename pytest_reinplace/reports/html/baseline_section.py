"""The part of the page about an older report that this one was compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base.visible import brief, visible
from ...compare import comparison_text, figure
from ...compare.comparison import Comparison, Row

_SENTENCE = 1000


def shown(comparison: Comparison, tests: Mapping[str, str], most: int) -> dict[str, Any]:
    """Return the values of the template.

    Args:
        comparison: with the older report.
        tests: the elements that tests are linked to, by their ids.
        most: rows of each list and of the table, those that are over a limit first.
    """
    rows, metrics = comparison_text.changed_rows(comparison), comparison.metrics
    lists = [
        (title, [(test, visible(text, _SENTENCE)) for test, text in clones])
        for title, clones in comparison_text.clone_lists(comparison)
    ]
    lists += [
        (title, [(name, "") for name in names]) for title, names in comparison_text.test_lists(comparison)
    ]
    told = [("", visible(remark, _SENTENCE)) for remark in comparison.remarks]
    told += [(row.nodeid, visible(text, _SENTENCE)) for row in rows for text in (*row.remarks, *row.advice)]
    lists += [("Also", told)] if told else []
    over = [(test, visible(text, _SENTENCE)) for test, text in comparison_text.over_limit(comparison)]
    return {
        "name": brief(comparison.old_name),
        "passed": comparison.passed,
        "verdict": visible(comparison_text.verdict_text(comparison)) if comparison.limits else "",
        "unchanged": comparison_text.unchanged_text(comparison, len(rows)),
        "lists": [
            _list(title, entries, tests, most)
            for title, entries in [*([("Over the limit", over)] if over else []), *lists]
        ],
        "heads": [figure.wording_of(metric) for metric in metrics],
        "rows": [_row(row, metrics, tests) for row in rows[:most]],
        "more": max(0, len(rows) - most),
        "totals": comparison_text.total_cells(comparison),
    }


def _list(
    title: str, entries: Sequence[tuple[str, str]], tests: Mapping[str, str], most: int
) -> dict[str, Any]:
    shown_entries = [
        {"test": brief(test), "href": tests.get(test), "text": text} for test, text in entries[:most]
    ]
    return {"title": title, "entries": shown_entries, "more": max(0, len(entries) - most)}


def _row(row: Row, metrics: Sequence[str], tests: Mapping[str, str]) -> dict[str, Any]:
    return {
        "test": brief(row.nodeid),
        "href": tests.get(row.nodeid),
        "cells": comparison_text.row_cells(row, metrics),
        "is_over": bool(row.excesses),
    }
