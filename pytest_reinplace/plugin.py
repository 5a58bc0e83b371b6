"""The pytest plugin: its hooks, and nothing else."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from . import hookspec, item_capture, launch, marker, options, progress, records, verification
from .fixtures import assert_clones, assert_reinplaced, reinplace
from .item_capture import SETTINGS, settings_of

if TYPE_CHECKING:
    from .comparison import Comparison
    from .stored import Stored

__all__ = ["assert_clones", "assert_reinplaced", "reinplace"]

_RECORDS = pytest.StashKey[records.Records]()
_FAILURES = pytest.StashKey[list[str]]()
_UPDATED = pytest.StashKey[list[str]]()
_OLD: pytest.StashKey[Stored] = pytest.StashKey()
_COMPARED: pytest.StashKey[Comparison] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the hooks that others may implement."""
    pluginmanager.add_hookspecs(hookspec)


@pytest.hookimpl(trylast=True)
def pytest_reinplace_device_info() -> dict[str, Any] | None:
    """Say what the tests ran on, where no plugin knows better."""
    from . import device

    return device.default()


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
    if hasattr(config, "workerinput") or launch.rank() != 0:
        return
    if settings.paths:
        from .reports import target

        target.prepare(settings.paths)
    if settings.compare is not None:
        from . import comparison_gate

        config.stash[_OLD] = comparison_gate.prepare(settings.compare)
    config.stash[_RECORDS] = records.Records()
    config.pluginmanager.register(config.stash[_RECORDS], "reinplace-records")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Take hold of the terminal while nothing captures what is written to it."""
    if not settings_of(session.config).disable:
        session.config.stash[progress.SESSION] = progress.of_session(session.config)


def pytest_enter_pdb(config: pytest.Config) -> None:
    """Leave the terminal to the debugger."""
    progress.of(config).silence()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect corpus entries."""
    if not file_path.name.endswith(".reinplace.yaml") or settings_of(parent.config).disable:
        return None
    from .collect import collect_file

    return collect_file(file_path, parent)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse wrong markers before the first test runs."""
    for item in items:
        if item.get_closest_marker(marker.NAME) is not None:
            marker.read(item)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start capturing before the test's fixtures are set up."""
    if settings_of(item.config).disable and marker.read(item).has_limits:
        pytest.skip(item_capture.DISABLED)
    if item_capture.is_wanted(item):
        if item_capture.is_asked(item):
            item_capture.require_device(item)
        item_capture.begin(item)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hand on what the test compiled, and hold the limits of its marker against it."""
    try:
        result = yield
    except BaseException as error:
        verification.note(item, error)
        raise
    finally:
        item_capture.hand_on(item)
    verification.fail_where_different(item)  # first: nothing outranks a miscompile
    item_capture.check_limits(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Stop capturing after the test's fixtures are torn down."""
    try:
        result = yield
        verification.fail_where_different(item)
        return result
    finally:
        item_capture.end(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send pictures along; keep verdicts readable: torch logs hundreds of empty records in a compile."""
    report = yield
    item_capture.illustrate(item, report)
    if item_capture.running(item) is not None:
        from . import trace_log

        report.sections = trace_log.removed(report.sections)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the report, and which files could not be written after all."""
    for failure in config.stash.get(_FAILURES, []):
        terminalreporter.line(f"ERROR: {failure}", red=True)
    if settings_of(config).verify and _RECORDS in config.stash:
        verification.summarize(terminalreporter, config.stash[_RECORDS].sorted())
    if settings_of(config).report and _RECORDS in config.stash:
        from . import terminal
        from .reports import files

        terminal.summarize(terminalreporter, config.stash[_RECORDS].sorted())
        for command in files.github_commands(config.stash[_RECORDS].sorted(), settings_of(config)):
            terminalreporter.line(command)
    if settings_of(config).measures and _RECORDS in config.stash:
        from .measure import summary

        updated = config.stash.get(_UPDATED, [])
        summary.summarize(terminalreporter, config.stash[_RECORDS].sorted(), updated)
    if _COMPARED in config.stash:
        from . import comparison_gate

        comparison_gate.summarize(terminalreporter, config.stash[_COMPARED])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Note what a worker of pytest-xdist ran on; one that was killed says nothing."""
    from . import device

    device.take(node.config, node.gateway.id, getattr(node, "workeroutput", {}))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave torch and the terminal as they were."""
    item_capture.end_interrupted(config)
    progress.of(config).close()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the files and compare with the old one, of what is known; workers of xdist do neither."""
    config, settings = session.config, settings_of(session.config)
    if hasattr(config, "workerinput") and settings.json is not None and not settings.disable:
        from . import device

        device.hand_on(config)
    if _RECORDS not in config.stash or config.option.collectonly:
        return
    known = config.stash[_RECORDS].sorted()
    if settings.paths:
        from .reports import files

        failures = config.stash[_FAILURES] = files.write_all(known, config)
        if failures and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
    if settings.updates:
        from .measure import update

        updated = config.stash[_UPDATED] = update.recorded(known, config, settings)
        if update.failed(updated) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
    if _OLD in config.stash:
        from . import comparison_gate

        found = config.stash[_COMPARED] = comparison_gate.judge(config.stash[_OLD], known, settings)
        if not found.passed and session.exitstatus in comparison_gate.MAY_FAIL:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
