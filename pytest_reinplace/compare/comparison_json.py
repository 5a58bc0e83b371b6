"""A comparison as JSON, for other programs."""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
from typing import Any

from .clones import Change
from .comparison import Comparison, Row

# Raised when a key changes its meaning or goes; new keys may come without.
SCHEMA = 1


def as_json(comparison: Comparison) -> str:
    """Return the comparison as ``comparison.schema.json`` describes it: sorted keys, ASCII only."""
    found = {
        "schema": SCHEMA,
        "old": comparison.old_name,
        "new": comparison.new_name,
        "passed": comparison.passed,
        "limits": [limit.text for limit in comparison.limits],
        "bounds": comparison.bounds,
        "failures": comparison.failures,
        "remarks": comparison.remarks,
        "added": comparison.added,
        "removed": comparison.removed,
        "tests": {row.nodeid: _test(row) for row in comparison.rows},
    }
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def _test(row: Row) -> dict[str, Any]:
    return {
        "old": dict(row.old),
        "new": dict(row.new),
        "excesses": row.excesses,
        "exceeded": row.exceeded,
        "remarks": row.remarks,
        "advice": row.advice,
        "improved": row.improved,
        "clones": [_clone(change) for change in row.clones],
    }


def _clone(change: Change) -> dict[str, Any]:
    sides = {"old": change.old, "new": change.new}
    return {"kind": change.kind, **{name: side and dataclasses.asdict(side) for name, side in sides.items()}}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the comparison."""
    text = importlib.resources.files(__package__).joinpath("comparison.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
