"""The rows of the page about what is made below the graphs: copies of lowering, and measured calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.fit import TIMES
from ...base.visible import brief, visible
from ...base.wording import bytes_of, plural
from ..held import Call
from ..lowered import Copied
from .source_link import SourceLinks

# What the filter looks at: a group of copies may be in any number of tests.
_MOST_TEXT = 3000


def copied_view(group: Copied, outcomes: Mapping[str, str], links: SourceLinks) -> dict[str, Any]:
    """Return the copies of one line and cause as the template wants them.

    Args:
        group: the copies.
        outcomes: of the tests, by their ids.
        links: to sources.
    """
    first, tests = group.copies[0], group.tests
    texts = (first.label, first.cause, group.where, first.sentence, first.hint, *tests)
    source = first.source or ""
    return {
        "label": brief(first.label),
        "nbytes": group.nbytes,
        "bytes": bytes_of(group.nbytes),
        "count": len(group.copies),
        "times": f"{len(group.copies)}{TIMES}",
        "cause": brief(first.cause),
        "where": brief(group.where),
        "href": links.href(source),
        "sentence": brief(first.sentence),
        "hint": brief(first.hint),
        "test": brief(tests[0]) if len(tests) == 1 else "",
        "tests": plural(len(tests), "test"),
        "outcome": "failed" if any(outcomes[test] == "failed" for test in tests) else outcomes[tests[0]],
        "text": visible(" ".join(texts), _MOST_TEXT) if len(tests) > 1 else "",
    }


def call_view(call: Call) -> dict[str, Any]:
    """Return a measured call as the template wants it: each figure with what it is sorted by."""
    values = (-1 if value is None else value for value in call.figures)
    return {
        "test": brief(call.test),
        "which": call.which,
        "figures": list(zip(values, call.cells(), strict=True)),
        "note": brief(call.note),
        "is_odd": call.is_odd,
    }
