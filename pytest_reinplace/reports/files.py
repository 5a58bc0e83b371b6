"""The files of a session: which report goes where."""

from __future__ import annotations

import os
from pathlib import Path

from ..options import Settings
from ..record import Record
from . import target
from .annotation import commands
from .document import as_json, document
from .markdown import markdown
from .source_link import SourceLinks


def write_all(records: list[Record], settings: Settings) -> None:
    """Write every report that was asked for."""
    report = document(records, settings.pass_name, settings.backend)
    if settings.json is not None:
        target.write(settings.json, as_json(report))
    if settings.markdown is not None:
        target.write(settings.markdown, markdown(report), append=_is_summary(settings.markdown))
    if settings.html is not None:
        from .page import page

        target.write(settings.html, page(report, SourceLinks(Path.cwd(), settings.html.parent)))


def github_commands(records: list[Record], settings: Settings) -> list[str]:
    """Return what GitHub makes annotations of; nothing outside a workflow."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return []
    report = document(records, settings.pass_name, settings.backend)
    return commands(report, os.getcwd(), os.environ.get("GITHUB_WORKSPACE") or os.getcwd())


def _is_summary(path: Path) -> bool:
    """Return whether a file is the one in which all commands of a workflow's step leave their summaries."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    return bool(summary) and os.path.realpath(path) == os.path.realpath(str(summary))
