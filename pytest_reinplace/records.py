"""The records of a session, collected as its tests report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .record import Record


class Records:
    """Collects the records of a session, a plugin of its own: only the controller of a run has one."""

    def __init__(self) -> None:
        self._by_id: dict[str, Record] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that has run; the last run of a repeated test counts."""
        if report.when != "call" or not report.user_properties:
            return
        from .record import Record

        record = Record.of(report)
        if record is not None:
            self._by_id[record.nodeid] = record

    def sorted(self) -> list[Record]:
        """Return the records by test id, whatever the order of running was."""
        return [self._by_id[nodeid] for nodeid in sorted(self._by_id)]
