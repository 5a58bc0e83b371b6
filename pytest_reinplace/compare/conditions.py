"""Under which conditions two reports were made: the pass under test, the backend and torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..base.wording import plural
from ..record.stored import Stored, StoredTest

_NAMES = ("pass", "backend")


def remarks(old: Stored, new: Stored, nodeids: Sequence[str]) -> Iterator[str]:
    """Yield what differs between two reports, a sentence each.

    A test of its own pass, by a marker, counts by itself: each graph says by what it was compiled.

    Args:
        old: the report before.
        new: the report now.
        nodeids: the tests that are in both.
    """
    changes: dict[tuple[str, str], int] = {}
    for nodeid in nodeids:
        before, now = _used(old.tests[nodeid]), _used(new.tests[nodeid])
        if before and now and before != now:
            changes[before, now] = changes.get((before, now), 0) + 1
    for (before, now), count in changes.items():
        where = "" if count == len(nodeids) else f" in {plural(count, 'test')}"
        yield f"compiled by {before} before, by {now} now{where}: figures may differ for that alone"
    torches = [str((report.document.get("versions") or {}).get("torch") or "") for report in (old, new)]
    if all(torches) and torches[0] != torches[1]:
        yield f"torch {torches[0]} before, torch {torches[1]} now: figures may differ for that alone"


def _used(test: StoredTest) -> str:
    """Return the pass and the backend of a test's graphs; empty where its report does not say."""
    found = dict.fromkeys(_pair(graph.get(name) for name in _NAMES) for graph in test.record.graphs)
    return " and ".join(sorted(filter(None, found)))


def _pair(names: Iterable[object]) -> str:
    return "/".join(name for name in names if isinstance(name, str) and name)
