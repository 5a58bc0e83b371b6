"""The files of a session: which report goes where."""

from __future__ import annotations

from ..options import Settings
from ..record import Record
from . import target
from .document import as_json, document


def write_all(records: list[Record], settings: Settings) -> None:
    """Write every report that was asked for."""
    report = document(records, settings.pass_name, settings.backend)
    if settings.json is not None:
        target.write(settings.json, as_json(report))
