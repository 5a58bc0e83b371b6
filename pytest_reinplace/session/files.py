"""The files of a session: which report goes where."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..record.record import Record
from ..reports import target
from ..reports.annotation import Workflow, commands
from ..reports.document import as_json, document
from ..reports.html.source_link import SourceLinks
from ..reports.markdown import markdown
from . import device, hooks
from .item_capture import settings_of
from .settings import Settings

if TYPE_CHECKING:
    from ..compare.comparison import Comparison


def write_all(records: list[Record], config: pytest.Config, compared: Comparison | None = None) -> list[str]:
    """Write every report that was asked for; return what could not be written or done, and why.

    One that fails, for a disk is full or a folder gone, takes no other along; nor does a hook that fails.

    Args:
        records: one for each test.
        config: of the session.
        compared: the session beside an older report, ``None`` where there is none; the page shows it.
    """
    settings, failures = settings_of(config), []
    report = document_of(records, settings)
    for option, path in settings.paths.items():
        written = report
        if option == "--reinplace-json":
            written, problems = _with_hooks(report, config)
            failures += [f"{option}: {problem}" for problem in problems]
        try:
            target.write(path, _TEXTS[option](written, path, compared), append=_is_summary(path))
        except OSError as error:
            failures.append(f"{option}: cannot write {path}: {error}")
    return failures


def _with_hooks(report: dict[str, Any], config: pytest.Config) -> tuple[dict[str, Any], list[str]]:
    """Return the report with what plugins know, and which of them failed: without theirs it is whole."""
    problems = []
    try:
        report = {**report, "device": device.known(config)}
    except hooks.HookError as error:
        problems.append(str(error))
    try:
        report = hooks.updated(config, report)
    except hooks.HookError as error:
        problems.append(str(error))
    return report, problems


def _html(report: dict[str, Any], path: Path, compared: Comparison | None) -> str:
    from ..reports.html.page import page

    return page(report, SourceLinks(Path.cwd(), path.parent), compared)


_TEXTS: dict[str, Callable[[dict[str, Any], Path, Comparison | None], str]] = {
    "--reinplace-json": lambda report, path, compared: as_json(report),
    "--reinplace-markdown": lambda report, path, compared: markdown(report),
    "--reinplace-html": _html,
}


def document_of(records: list[Record], settings: Settings) -> dict[str, Any]:
    """Return the document that every report of a session is made of."""
    return document(records, settings.pass_name, settings.backend)


def github_commands(report: dict[str, Any]) -> list[str]:
    """Return what GitHub makes annotations of; nothing outside a workflow."""
    workflow = Workflow.running()
    return commands(report, workflow) if workflow else []


def _is_summary(path: Path) -> bool:
    """Return whether a file is the one in which all commands of a workflow's step leave their summaries."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    return bool(summary) and os.path.realpath(path) == os.path.realpath(str(summary))
