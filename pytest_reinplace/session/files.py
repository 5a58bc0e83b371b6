"""The files of a session: which report goes where."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def write_all(records: list[Record], config: pytest.Config) -> list[str]:
    """Write every report that was asked for; return what could not be written or done, and why.

    One that fails, for a disk is full or a folder gone, takes no other along; nor does a hook that fails.
    """
    settings, failures = settings_of(config), []
    report = document_of(records, settings)
    for option, path in settings.paths.items():
        written = report
        if option == "--reinplace-json":
            written, problems = _with_hooks(report, config)
            failures += [f"{option}: {problem}" for problem in problems]
        try:
            target.write(path, _TEXTS[option](written, path), append=_is_summary(path))
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


def _html(report: dict[str, Any], path: Path) -> str:
    from ..reports.html.page import page

    return page(report, SourceLinks(Path.cwd(), path.parent))


_TEXTS: dict[str, Callable[[dict[str, Any], Path], str]] = {
    "--reinplace-json": lambda report, path: as_json(report),
    "--reinplace-markdown": lambda report, path: markdown(report),
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
