"""The pytest plugin: its hooks, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from . import hookspec, options
from .base.choices import PASSES
from .fixtures import assert_clones, assert_copies, assert_graph, assert_peak, assert_reinplaced, reinplace
from .session import item_capture, marker, trace_log
from .session.item_capture import SETTINGS, settings_of

__all__ = ["assert_clones", "assert_copies", "assert_graph", "assert_peak", "assert_reinplaced", "reinplace"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    pluginmanager.add_hookspecs(hookspec)


@pytest.hookimpl(trylast=True)
def pytest_reinplace_device_info() -> dict[str, Any] | None:
    """Say what the tests ran on, where no plugin knows better."""
    from .session import device

    return device.default()


def pytest_configure(config: pytest.Config) -> None:
    """Settle the options, and refuse at once what would fail after the tests have run."""
    config.addinivalue_line("markers", marker.LINE)
    settings = config.stash[SETTINGS] = options.resolve(config)
    if settings.disable:
        return
    if settings.pass_name is not None and settings.pass_name not in PASSES:
        from .capture.pass_under_test import PassError, find

        try:
            find(settings.pass_name, config.rootpath)
        except PassError as error:
            raise pytest.UsageError(f"--reinplace-pass: {error}") from None
    if settings.collects:
        from .session import controller

        controller.begin(config)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Take hold of the terminal while nothing captures what is written to it."""
    config = session.config
    verbosity = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES)
    if verbosity >= 1 and not settings_of(config).disable:
        from .base import progress

        progress.begin(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect corpus entries."""
    if not file_path.name.endswith(".reinplace.yaml") or settings_of(parent.config).disable:
        return None
    from .session.collect import collect_file

    return collect_file(file_path, parent)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Read the test's markers, and start capturing before its fixtures are set up."""
    marked = marker.read(item)
    _silence_trace_log(item)
    if settings_of(item.config).disable and marked.has_limits:
        pytest.skip(item_capture.DISABLED)
    if item_capture.is_wanted(item):
        if item_capture.is_asked(item):
            item_capture.require_device(item)
        item_capture.begin(item)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hand on what the test compiled, and hold the limits of its marker against it."""
    __tracebackhide__ = True
    _silence_trace_log(item)
    try:
        result = yield
    except BaseException as error:
        if item_capture.running(item) is not None:
            from .session import verification

            verification.note(item, error)
        item_capture.shorten(error)
        item_capture.advise(item, error)
        raise
    finally:
        item_capture.hand_on(item)
    _fail_where_different(item)  # first: nothing outranks a miscompile
    item_capture.check_limits(item)
    item_capture.note_passed(item)
    return result


def _silence_trace_log(item: pytest.Item) -> None:
    """Undo what pytest does at the begin of each phase of a test, after which every compile takes longer."""
    if not settings_of(item.config).disable:
        trace_log.silence()


def _fail_where_different(item: pytest.Item) -> None:
    if item_capture.running(item) is not None:
        from .session import verification

        verification.fail_where_different(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Judge what the test's fixtures compiled when they were torn down, and stop capturing."""
    try:
        result = yield
        _fail_where_different(item)
        if item_capture.passed(item):  # what its fixtures compiled since counts as well
            item_capture.check_limits(item)
        return result
    finally:
        item_capture.end(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send pictures along, and keep verdicts readable: torch logs hundreds of empty records in a compile.

    A miscompile fails also where a failure is expected.
    """
    report = yield
    if hasattr(report, "wasxfail"):
        from .session import verification

        verification.refuse_xfail(item, report)
    item_capture.illustrate(item, report)
    if item_capture.was_begun(item):  # its fixtures are torn down when the capture is over
        report.sections = trace_log.removed(report.sections)
    item_capture.locate_skip(item, report)
    return report


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain the clones behind ``label in assert_clones`` and ``label not in assert_clones``."""
    assertions = sys.modules.get(f"{__package__}.assertions")
    if assertions is None or not isinstance(right, assertions.Clones):
        return None
    lines: list[str] | None = right.membership(op, left)
    return lines


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave torch as it was."""
    item_capture.end_interrupted(config)
