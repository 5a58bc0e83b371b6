"""What is made of all tests together: summaries, files, baselines, a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ..base import launch, terminated
from ..record.record import Record
from . import device
from .item_capture import settings_of

if TYPE_CHECKING:
    from ..compare.comparison import Comparison
    from ..record.stored import Stored
    from .updating import Updates


class Controller:
    """Sees every test of a run, reports and compares: a plugin that only one process of a run has.

    Args:
        config: the configuration of the session.

    Raises:
        pytest.UsageError: a file cannot be written, or the one to compare with cannot be read.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._settings = settings_of(config)
        self._by_id: dict[str, Record] = {}
        self._failures: list[str] = []
        self._updated: list[str] = []
        self._old: Stored | None = None
        self._compared: Comparison | None = None
        self._updates: Updates | None = None
        if self._settings.rewrites:
            from .updating import Updates

            self._updates = Updates(config)
        if self._settings.paths:
            from ..reports import target

            target.prepare(self._settings.paths)
        if self._settings.compare is not None:
            from . import comparison_gate

            self._old = comparison_gate.prepare(self._settings.compare)

    def pytest_sessionstart(self) -> None:
        """See to it that a session that is ended from outside writes what is known."""
        if self._settings.paths or self._settings.updates or self._updates is not None:
            terminated.like_ctrl_c(self._config)

    @property
    def records(self) -> list[Record]:
        """What is known of the tests, by test id, whatever the order of running was."""
        return [self._by_id[nodeid] for nodeid in sorted(self._by_id)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that has run; the last run of a repeated test counts."""
        if self._updates is not None:
            self._updates.take(report)
        if report.when == "call" and report.user_properties:
            record = Record.of(report)
            if record is not None:
                self._by_id[record.nodeid] = record

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report, and which files could not be written after all."""
        records = self.records
        for failure in self._failures:
            terminalreporter.line(f"ERROR: {failure}", red=True)
        if self._settings.verify or self._settings.verify_rules:
            from . import verification

            verification.summarize(terminalreporter, records, self._settings)
        if self._settings.report:
            from . import files, terminal

            report = files.document_of(records, self._settings)
            width = self._config.get_terminal_writer().fullwidth
            terminal.summarize(terminalreporter, report, width, self._config.option.verbose)
            for command in files.github_commands(report):
                terminalreporter.line(command)
        if self._settings.measures:
            from ..measure import summary

            summary.summarize(terminalreporter, records, self._updated)
        if self._updates is not None:
            self._updates.summarize(terminalreporter)
        if self._compared is not None:
            from . import comparison_gate

            comparison_gate.summarize(terminalreporter, self._compared)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Note what a worker of pytest-xdist ran on; one that was killed says nothing."""
        device.take(node.config, node.gateway.id, getattr(node, "workeroutput", {}))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the files and compare with the old one, of what is known."""
        if self._config.option.collectonly:
            return
        records = self.records
        if self._old is not None:
            from . import comparison_gate

            self._compared = comparison_gate.judge(self._old, records, self._settings)
        if self._settings.paths:
            from . import files

            self._failures = files.write_all(records, self._config, self._compared)
            if self._failures and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        if self._settings.updates:
            from ..measure import update

            self._updated = update.recorded(records, self._config, self._settings.update_new_only)
            if update.failed(self._updated) and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        if self._updates is not None:
            self._updates.finish(session)
        if self._compared is not None and not self._compared.passed:
            from . import comparison_gate

            if session.exitstatus in comparison_gate.MAY_FAIL:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED


class Worker:
    """Tells the controller what a worker of pytest-xdist ran on: a plugin that only workers have.

    Args:
        config: the configuration of the worker's session.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_sessionfinish(self) -> None:
        """Hand it on."""
        device.hand_on(self._config)


def begin(config: pytest.Config) -> None:
    """Register what this process is among those of a run.

    Raises:
        pytest.UsageError: a file cannot be written, or the one to compare with cannot be read.
    """
    if hasattr(config, "workerinput"):
        if settings_of(config).json is not None:
            config.pluginmanager.register(Worker(config), "reinplace-worker")
    elif launch.rank() == 0:
        config.pluginmanager.register(Controller(config), "reinplace-controller")
