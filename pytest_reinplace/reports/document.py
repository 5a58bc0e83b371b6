"""The document that every report is made of, which ``--reinplace-json`` writes as it is."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..base import _torch
from ..record import plain
from ..record.counts import total
from ..record.record import SCHEMA, Record


def document(
    records: Iterable[Record],
    pass_name: str | None,
    backend: str | None,
    device: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the content: the same for a serial run and any number of workers.

    ``report.schema.json`` beside this module describes it.

    Args:
        records: one for each test that was captured.
        pass_name: the pass given by option, ``None`` where none was; each graph names its own.
        backend: the backend given by option, as the pass.
        device: what the session ran on, with its ``slug``; ``None`` where that is not known.
    """
    ordered = sorted(records, key=lambda record: record.nodeid)
    return {
        "schema": SCHEMA,
        "versions": {name: _torch.version(name) for name in ("pytest-reinplace", "torch", "triton")},
        "pass": pass_name,
        "backend": backend,
        "device": None if device is None else dict(device),
        "tests": {
            record.nodeid: {
                "outcome": record.outcome,
                **record.counts(),
                **_measured(record),
                **({} if record.memory is None else {"memory": list(record.memory)}),
                "graphs": list(record.graphs),
            }
            for record in ordered
        },
        "reasons": _sentences(ordered),
        "total": {"tests": len(ordered), **total(record.counts() for record in ordered)},
    }


def _measured(record: Record) -> dict[str, Any]:
    """Return what was measured, and what the pass under test needs beside the counts, for a comparison."""
    if record.measured is None:
        return {}
    tested = record.measured["sides"][record.measured["pass_name"]]
    return {**{name: tested[name] for name in ("peak_bytes", "runtime")}, "measured": record.measured}


def _sentences(records: Iterable[Record]) -> dict[str, str]:
    """Return a sentence for each reason that is given."""
    found = sorted({clone["reason"] for record in records for clone in record.clones if clone["reason"]})
    # passes would import torch, which a report that was written before can do without.
    return {name: plain.reason_type()(name).sentence for name in found}


def as_json(report: dict[str, Any]) -> str:
    """Return the file: sorted keys, ASCII only, so that it is the same bytes wherever it is written."""
    return json.dumps(report, indent=1, sort_keys=True) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    text = importlib.resources.files(__package__).joinpath("report.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
