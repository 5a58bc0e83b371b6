"""A JSON report that was written before, read back and checked: it may come from anywhere."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from ..base.visible import visible
from . import copied, held, ledgers, plain
from .figures import Measurement
from .record import SCHEMA, Record

MAX_BYTES = 1 << 30
"""Largest report that is read."""
MAX_COUNT = 2**63 - 1
"""Largest number of bytes that is believed."""

_OUTCOMES = ("passed", "failed", "skipped")
# What each outcome must hold beside its lists; keys that only a newer version knows are left aside.
_TEXTS = ("label", "op", "arg", "node")
_OF_A_COPY = ("node", "value", "device", "graph", "hint")


class StoredError(Exception):
    """A report cannot be used. The message names the file, what was expected and what came."""


@dataclasses.dataclass(frozen=True, slots=True)
class StoredTest:
    """One test of a report.

    Args:
        record: what it compiled.
        measured: ``peak_bytes`` (bytes) and ``runtime`` (seconds), where the report has them.
        sides: all sides of a corpus entry, where it was measured.
    """

    record: Record
    measured: Mapping[str, int | float]
    sides: Measurement | None = None

    @property
    def figures(self) -> dict[str, int | float]:
        """Its figures by metric; one that was not measured is missing."""
        counts = self.record.counts()
        found = {"clones": counts["cloned"], "clone_bytes": counts["clone_bytes"], **self.measured}
        found |= ledgers.figures_of(self.record.graphs) | copied.figures_of(self.record.graphs)
        return found | held.figures_of(self.record.memory)


@dataclasses.dataclass(frozen=True, slots=True)
class Stored:
    """A report.

    Args:
        name: where it comes from, for messages.
        document: what the file holds, as it is.
        tests: its tests by id, in the order of ids.
    """

    name: str
    document: Mapping[str, Any]
    tests: Mapping[str, StoredTest]

    @property
    def records(self) -> list[Record]:
        """What the tests compiled, by test id."""
        return [test.record for test in self.tests.values()]


def read(path: Path) -> Stored:
    """Read a file of ``--reinplace-json``.

    Raises:
        StoredError: it cannot be read, is damaged or is of a newer version.
    """
    name = str(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            _refuse(name, f"expected at most {MAX_BYTES} bytes, got {size}")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        _refuse(name, f"cannot be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
        _refuse(name, f"expected a JSON report in UTF-8: {error}")
    try:
        data = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        _refuse(name, "expected a JSON report, got one nested too deeply")
    except ValueError as error:
        _refuse(name, f"expected a whole JSON report of --reinplace-json, got no valid JSON: {error}")
    return parse(data, name)


def parse(data: Any, name: str) -> Stored:
    """Return a report from its document.

    Raises:
        StoredError: it is no report that this version understands.
    """
    if not isinstance(data, dict) or "schema" not in data or "tests" not in data:
        _refuse(
            name,
            "expected a JSON report of --reinplace-json, got other data ('schema' or 'tests' is missing)",
        )
    schema = data["schema"]
    if not _is_count(schema) or schema < 1:
        _refuse(name, f"expected 'schema' to be a number from 1 to {SCHEMA}, got {_shown(schema)}")
    if schema > SCHEMA:
        _refuse(
            name,
            f"written by a newer pytest-reinplace: its schema is {schema}, this one reads up to {SCHEMA}; "
            "upgrade pytest-reinplace, or write the report anew with this version",
        )
    tests = _get(data, "tests", dict, name, "the report")
    return Stored(name, data, {nodeid: _test(name, nodeid, tests[nodeid]) for nodeid in sorted(tests)})


def _test(name: str, nodeid: str, data: Any) -> StoredTest:
    where = f"test {visible(nodeid, 200)!r}"
    if not isinstance(data, dict):
        _refuse(name, f"{where}: expected a mapping, got {_shown(data)}")
    if data.get("outcome") not in _OUTCOMES:
        got = _shown(data.get("outcome"))
        _refuse(name, f"{where}: expected 'outcome' to be one of {', '.join(_OUTCOMES)}, got {got}")
    graphs = tuple(_graph(name, where, graph) for graph in _get(data, "graphs", list, name, where))
    measured: dict[str, int | float] = {}
    if data.get("peak_bytes") is not None:
        measured["peak_bytes"] = _count(data, "peak_bytes", name, where)
    if data.get("runtime") is not None:
        measured["runtime"] = _seconds(data["runtime"], name, where)
    try:
        sides = Measurement.from_dict(data["measured"]) if data.get("measured") is not None else None
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        _refuse(name, f"{where}: what was measured is damaged: {visible(error, 200)}")
    record = Record(nodeid, data["outcome"], graphs, memory=_memory(name, where, data))
    return StoredTest(record, measured, sides)


def _memory(name: str, where: str, data: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    """Return what measured calls held, where that is known."""
    if data.get("memory") is None:
        return None
    return tuple(_held(name, where, call) for call in _get(data, "memory", list, name, where))


def _held(name: str, where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        _refuse(name, f"{where}: expected each call in 'memory' to be a mapping, got {_shown(data)}")
    programs = [_program(name, where, one) for one in _get(data, "programs", list, name, where)]
    figures = {key: _whole(data, key, name, where) for key in ("measured_peak", "lower_bound")}
    # Known together, or not at all.
    if data.get("unexplained") is not None:
        figures |= {key: _whole(data, key, name, where) for key in ("unexplained", "outside")}
    return {**figures, "programs": programs}


def _program(name: str, where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        _refuse(name, f"{where}: expected each program to be a mapping, got {_shown(data)}")
    counts = {
        key: None if data.get(key) is None else _count(data, key, name, where)
        for key in ("static_peak", "static_bound")
    }
    texts = {
        key: _get(data, key, str, name, where) if key in data else ""
        for key in ("graph", "problem", "needed_by")
    }
    before = _whole(data, "before", name, where) if "before" in data else 0
    peak = None if data.get("peak") is None else _whole(data, "peak", name, where)
    return {**texts, **counts, "before": before, "peak": peak}


def _graph(name: str, where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        _refuse(name, f"{where}: expected each graph to be a mapping, got {_shown(data)}")
    suspicious = data.get("suspicious") or []
    if not isinstance(suspicious, list) or not all(isinstance(label, str) for label in suspicious):
        _refuse(name, f"{where}: expected 'suspicious' to be a list of labels, got {_shown(suspicious)}")
    return {
        **data,
        "graph": _get(data, "graph", str, name, where),
        "problem": data.get("problem") and _get(data, "problem", str, name, where),
        "suspicious": suspicious,
        **_applications(name, where, data),
        **_copies(name, where, data),
        "outcomes": [_outcome(name, where, one) for one in _get(data, "outcomes", list, name, where)],
    }


def _applications(name: str, where: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what passes and rules did, where that is known."""
    if data.get("applications") is None:
        return {}
    found = _get(data, "applications", list, name, where)
    return {"applications": [_application(name, where, one) for one in found]}


def _application(name: str, where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        _refuse(name, f"{where}: expected each application to be a mapping, got {_shown(data)}")
    for key in ("graph", "stage", "pass", "rule", "node"):
        _get(data, key, str, name, where)
    for key in ("copies_added", "copies_removed"):
        labels = _get(data, key, list, name, where)
        if not all(isinstance(label, str) for label in labels):
            _refuse(name, f"{where}: expected {key!r} to be a list of labels, got {_shown(labels)}")
    for key in ("number", "nodes", "copy_bytes"):
        _whole(data, key, name, where)
    finding = data.get("finding")
    if finding is not None:
        if not isinstance(finding, dict):
            _refuse(name, f"{where}: expected 'finding' to be a mapping, got {_shown(finding)}")
        for key in ("status", "text", "node"):
            _get(finding, key, str, name, where)
    source = None if data.get("source") is None else _get(data, "source", str, name, where)
    seconds = _seconds(data.get("seconds"), name, where, "seconds")
    return {**data, "source": source, "finding": finding, "seconds": seconds}


def _copies(name: str, where: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the copies that lowering made, where they are known."""
    if data.get("copies") is None:
        return {}
    return {"copies": [_copy(name, where, one) for one in _get(data, "copies", list, name, where)]}


def _copy(name: str, where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        _refuse(name, f"{where}: expected each copy to be a mapping, got {_shown(data)}")
    texts = {key: _get(data, key, str, name, where) for key in ("label", "cause", "buffer", "of")}
    rest = {key: _get(data, key, str, name, where) if key in data else "" for key in _OF_A_COPY}
    return {
        **texts,
        **rest,
        "nbytes": _count(data, "nbytes", name, where),
        "meant": _get(data, "meant", bool, name, where),
        "source": None if data.get("source") is None else _get(data, "source", str, name, where),
    }


def _outcome(name: str, where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        _refuse(name, f"{where}: expected each outcome to be a mapping, got {_shown(data)}")
    for key in _TEXTS:
        _get(data, key, str, name, where)
    _get(data, "reinplaced", bool, name, where)
    _count(data, "nbytes", name, where)
    for key in ("source", "reason"):
        if data.get(key) is not None:
            _get(data, key, str, name, where)
    known, reasons = _names()
    kept = {key: value for key, value in data.items() if key in known}
    for key in ("hint", "graph"):
        kept[key] = _get(data, key, str, name, where) if key in data else ""
    # Reasons are added from version to version; one that is not known here is shown as an unknown one.
    kept["reason"] = data.get("reason") if data.get("reason") in reasons else None
    for key in ("blockers", "moved"):
        nodes = _get(data, key, list, name, where) if key in data else []
        kept[key] = [_blocker(name, where, node) for node in nodes]
    for key in plain.others():
        kept[key] = None if data.get(key) is None else _other(name, where, data[key])
    return kept


@functools.cache
def _names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys that an outcome has, and the names of reasons."""
    keys = frozenset(field.name for field in dataclasses.fields(plain.outcome_type()))
    return keys, frozenset(reason.value for reason in plain.reason_type())


def _blocker(name: str, where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        _refuse(name, f"{where}: expected each blocker to be a mapping, got {_shown(data)}")
    return _node(name, where, data, "op")


def _other(name: str, where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        _refuse(name, f"{where}: expected another candidate to be a mapping, got {_shown(data)}")
    return _node(name, where, data, "label")


def _node(name: str, where: str, data: Mapping[str, Any], key: str) -> dict[str, Any]:
    source = data.get("source")
    return {
        "node": _get(data, "node", str, name, where),
        key: _get(data, key, str, name, where),
        "source": None if source is None else _get(data, "source", str, name, where),
    }


_KINDS = {dict: "a mapping", list: "a list", str: "a string", bool: "true or false"}


def _get(data: Mapping[str, Any], key: str, kind: type, name: str, where: str) -> Any:
    value = data.get(key)
    if not isinstance(value, kind):
        got = _shown(value) if key in data else "none"
        _refuse(name, f"{where}: expected {key!r} to be {_KINDS[kind]}, got {got}")
    return value


def _count(data: Mapping[str, Any], key: str, name: str, where: str) -> int:
    value = data.get(key)
    if not _is_count(value):
        _refuse(
            name, f"{where}: expected {key!r} to be a number of bytes, 0 to 2**63 - 1, got {_shown(value)}"
        )
    return int(value)  # type: ignore[arg-type]


def _whole(data: Mapping[str, Any], key: str, name: str, where: str) -> int:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_COUNT:
        _refuse(name, f"{where}: expected {key!r} to be a whole number, got {_shown(value)}")
    return value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


def _seconds(value: Any, name: str, where: str, key: str = "runtime") -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        _refuse(name, f"{where}: expected {key!r} to be seconds, 0 or more, got {_shown(value)}")
    return float(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; a key that comes twice would hide a test."""
    found = dict(pairs)
    if len(found) < len(pairs):
        count = collections.Counter(key for key, _ in pairs)
        twice, _ = count.most_common(1)[0]
        raise ValueError(f"the key {visible(twice, 200)!r} occurs twice in one object")
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits
        text = "one too large to show"
    return f"{type(value).__name__} {visible(text, 60)}"


def _refuse(name: str, problem: str) -> NoReturn:
    raise StoredError(f"{visible(name)}: {problem}")
