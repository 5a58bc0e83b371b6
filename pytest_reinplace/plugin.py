"""The pytest plugin: its hooks, and nothing else."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import item_capture, json_report, marker, options, record
from .fixtures import assert_clones, assert_reinplaced, reinplace
from .item_capture import SETTINGS, settings_of

if TYPE_CHECKING:
    from .comparison import Comparison
    from .stored import Stored

__all__ = ["assert_clones", "assert_reinplaced", "reinplace"]

_RECORDS = pytest.StashKey[record.Records]()
_OLD: pytest.StashKey[Stored] = pytest.StashKey()
_COMPARED: pytest.StashKey[Comparison] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Settle the options, and refuse at once what would fail after the tests have run."""
    config.addinivalue_line("markers", marker.LINE)
    settings = config.stash[SETTINGS] = options.resolve(config)
    if settings.disable:
        return
    if settings.pass_name is not None and settings.pass_name not in options.PASSES:
        from .pass_under_test import PassError, find

        try:
            find(settings.pass_name, config.rootpath)
        except PassError as error:
            raise pytest.UsageError(str(error)) from None
    if hasattr(config, "workerinput"):
        return
    if settings.json is not None:
        json_report.prepare(settings.json)
    if settings.compare is not None:
        from . import comparison_gate

        config.stash[_OLD] = comparison_gate.prepare(settings.compare)
    config.stash[_RECORDS] = record.Records()
    config.pluginmanager.register(config.stash[_RECORDS], "reinplace-records")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect corpus entries."""
    if not file_path.name.endswith(".reinplace.yaml") or settings_of(parent.config).disable:
        return None
    from .collect import collect_file

    return collect_file(file_path, parent)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse wrong markers before the first test runs."""
    for item in items:
        marker.read(item)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start capturing before the test's fixtures are set up."""
    if settings_of(item.config).disable and marker.read(item).has_limits:
        pytest.skip(item_capture.DISABLED)
    if item_capture.is_wanted(item):
        item_capture.begin(item)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hand on what the test compiled, and hold the limits of its marker against it."""
    try:
        result = yield
    finally:
        item_capture.hand_on(item)
    item_capture.check_limits(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Stop capturing after the test's fixtures are torn down."""
    try:
        return (yield)
    finally:
        item_capture.end(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the verdict of a captured test readable: torch logs hundreds of empty records in a compile."""
    report = yield
    if item_capture.running(item) is not None:
        report.sections = record.without_trace_log(report.sections)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the report."""
    if settings_of(config).report and _RECORDS in config.stash:
        from . import terminal

        terminal.summarize(terminalreporter, config.stash[_RECORDS].sorted())
    if _COMPARED in config.stash:
        from . import comparison_gate

        comparison_gate.summarize(terminalreporter, config.stash[_COMPARED])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the JSON file and compare with the old one; workers of xdist have none to write or to judge."""
    config, settings = session.config, settings_of(session.config)
    if settings.json is not None and _RECORDS in config.stash and not config.option.collectonly:
        json_report.write(settings.json, config.stash[_RECORDS].sorted(), settings)
    if _OLD in config.stash and not config.option.collectonly:
        from . import comparison_gate

        found = comparison_gate.judge(config.stash[_OLD], config.stash[_RECORDS].sorted(), settings)
        config.stash[_COMPARED] = found
        if not found.passed and session.exitstatus in comparison_gate.MAY_FAIL:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
