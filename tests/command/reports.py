"""Reports as ``--reinplace-json`` writes them, made by hand, and the command line in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_reinplace.command.main import main
from pytest_reinplace.compare.comparison import compare
from pytest_reinplace.compare.limit import limit
from pytest_reinplace.record.stored import Stored, parse

__all__ = [
    "application",
    "clone",
    "followed",
    "graph",
    "held",
    "in_place",
    "main",
    "report",
    "stored",
    "test",
    "write",
]


def clone(nbytes: int = 32, **changes: Any) -> dict[str, Any]:
    return {
        "label": "aten::index_put.self",
        "op": "aten::index_put",
        "arg": "self",
        "node": "index_put",
        "reinplaced": False,
        "nbytes": nbytes,
        "reason": "still-read",
        "blockers": [{"node": "sum_1", "op": "aten::sum", "source": "m.py:4"}],
        "source": "m.py:3",
        "hint": "read it before",
        "added": False,
        "fused": False,
        "allocates": False,
        "moved": [],
        "graph": "",
        **changes,
    }


def in_place(nbytes: int = 32) -> dict[str, Any]:
    return clone(nbytes, reinplaced=True, reason=None, blockers=[], hint="")


def graph(*outcomes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    cloned = [one for one in outcomes if not one["reinplaced"]]
    return {
        "graph": "[fw 0/0]",
        "outcomes": list(outcomes),
        "clones": [one["label"] for one in cloned],
        "reinplaced": [one["label"] for one in outcomes if one["reinplaced"]],
        "clone_bytes": sum(one["nbytes"] for one in cloned),
        "suspicious": [],
        "problem": "",
        "pass": "inductor",
        "backend": "graph",
        **changes,
    }


def test(*outcomes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"outcome": "passed", "graphs": [graph(*outcomes)], **changes}


test.__test__ = False  # type: ignore[attr-defined]


def report(**changes: Any) -> dict[str, Any]:
    """Return a report; ``tests`` are given by keyword."""
    data = {
        "schema": 1,
        "versions": {"pytest-reinplace": "0.1.0", "torch": "2.13.0", "triton": None},
        "pass": None,
        "backend": "graph",
        "tests": {},
        "total": {},
    }
    return data | changes


def stored(tests: dict[str, Any], name: str = "x.json") -> Stored:
    return parse(report(tests=tests), name)


def write(path: Path, tests: dict[str, Any], **changes: Any) -> str:
    """Write a report; returns the path as an argument."""
    path.write_text(json.dumps(report(tests=tests, **changes)))
    return str(path)


def application(rule: str = "fuse_mine", **changes: Any) -> dict[str, Any]:
    return {
        "number": 0,
        "graph": "[fw 0/0]",
        "stage": "post_grad",
        "pass": "pass_pattern_1",
        "rule": rule,
        "node": "cat",
        "source": "m.py:3",
        "nodes": -1,
        "copies_added": [],
        "copies_removed": [],
        "copy_bytes": 0,
        "seconds": 0.001,
        "finding": None,
        **changes,
    }


def followed(*applications: dict[str, Any]) -> dict[str, Any]:
    """Return a test whose one graph has these applications."""
    one = graph(clone(), applications=list(applications), unfollowed="")
    return {"outcome": "passed", "graphs": [one]}


def held(old: Any, new: Any, *limits: str) -> list[str]:
    """Return what is over limits when one test is compared with what it was."""
    found = compare(stored({"t.py::a": old}), stored({"t.py::a": new}), tuple(map(limit, limits)))
    over = [*found.failures, *(excess for row in found.rows for excess in row.excesses)]
    assert found.passed == (not over)
    return over
