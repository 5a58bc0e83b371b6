"""``--reinplace-compare``: the run held against a report that was written before."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from ..base.wording import path_of
from ..compare import comparison_text
from ..compare.comparison import Comparison, compare
from ..compare.limit import exact
from ..record import stored
from ..record.record import Record
from ..record.stored import Stored
from ..reports.annotation import Workflow, compared
from ..reports.document import as_json, document
from .settings import Settings

# A run that was interrupted, or broke, says so by itself.
MAY_FAIL = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def prepare(path: Path) -> Stored:
    """Read the old report before the first test, for the run may write its own to the same path.

    Raises:
        pytest.UsageError: it cannot be used; says why.
    """
    try:
        return dataclasses.replace(stored.read(path), name=path_of(path))
    except stored.StoredError as error:
        raise pytest.UsageError(f"--reinplace-compare: {error}") from None


def judge(old: Stored, records: list[Record], settings: Settings) -> Comparison:
    """Compare what ran with the old report; where no limit was given, nothing may grow."""
    ran = json.loads(as_json(document(records, settings.pass_name, settings.backend)))
    return compare(old, stored.parse(ran, "this run"), settings.fail_on or exact())


def summarize(terminal: pytest.TerminalReporter, found: Comparison) -> None:
    """Print the comparison as a section of its own, and in a workflow what it makes annotations of."""
    terminal.section("reinplace compared", red=not found.passed, green=found.passed)
    *lines, verdict = comparison_text.text(found)
    for line in lines:
        terminal.line(line)
    terminal.line(verdict, red=not found.passed, green=found.passed, bold=True)
    if workflow := Workflow.running():
        for command in compared(found, workflow):
            terminal.line(command)
