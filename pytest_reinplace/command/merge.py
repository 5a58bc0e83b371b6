"""``pytest-reinplace merge``: the reports of several shards as one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base import whole_file
from ..base.visible import visible
from ..base.wording import plural
from ..record import stored
from ..record.record import Record
from ..record.stored import Stored
from ..reports.document import as_json
from .errors import CommandError

# What is put together by a rule of its own; all other keys must agree, mappings may complete each other.
_OWN = ("tests", "total")
_SAME = ("schema", "versions", "pass", "backend")


def run(out: Path, paths: Sequence[Path], force: bool) -> int:
    """Write the report of all shards; returns the exit code.

    Raises:
        CommandError: shards do not belong together, or ``out`` cannot be written; it is as it was.
        stored.StoredError: a shard cannot be used.
    """
    if not force and out.exists():
        raise CommandError(
            f"{visible(out)}: exists already; give --force to replace it. The first path is the one to write"
        )
    shards = [stored.read(path) for path in paths]
    document = merged(shards)
    text = as_json(document)
    try:
        whole_file.write(out, text)
    except OSError as error:
        raise CommandError(f"{visible(out)}: cannot be written: {error.strerror or error}") from None
    print(f"{visible(out)}: {plural(len(document['tests']), 'test')} of {plural(len(shards), 'report')}")
    return 0


def merged(shards: Sequence[Stored]) -> dict[str, Any]:
    """Return the document that one run of all tests would have written.

    Raises:
        CommandError: a test is in two shards, or they were not written by the same versions and options.
    """
    tests: dict[str, Any] = {}
    origin: dict[str, str] = {}
    sums: dict[str, int] = {}
    rest: dict[str, Any] = {}
    for shard in shards:
        for nodeid, test in shard.document["tests"].items():
            if nodeid in tests:
                raise CommandError(
                    f"test {visible(nodeid, 300)!r} is in {visible(origin[nodeid])} and in "
                    f"{visible(shard.name)}; expected each test in one shard only"
                )
            tests[nodeid], origin[nodeid] = test, shard.name
        for record in shard.records:
            for name, count in record.counts().items():
                sums[name] = sums.get(name, 0) + count
        _join(rest, shard, shards[0])
    empty = Record("", "passed", ()).counts()
    return {**rest, "tests": tests, "total": {"tests": len(tests), **empty, **sums}}


def _join(rest: dict[str, Any], shard: Stored, first: Stored) -> None:
    """Add what a shard says beside its tests to what the others said."""
    for key in sorted({*shard.document, *rest} - set(_OWN)):
        value, known = shard.document.get(key), rest.get(key)
        if shard is first:
            rest[key] = value
        elif key == "device" and None in (known, value):
            rest[key] = known or value  # a shard that compiled nothing knows none
        elif key not in _SAME and isinstance(value, dict) and isinstance(known, dict):
            for name in known.keys() & value.keys():
                _agree(f"{key}.{name}", known[name], value[name], shard, first)
            rest[key] = {**known, **value}
        else:
            _agree(key, known, value, shard, first)


def _agree(key: str, known: Any, value: Any, shard: Stored, first: Stored) -> None:
    if known != value:
        raise CommandError(
            f"{visible(shard.name)}: expected {visible(key, 60)!r} to be as in {visible(first.name)}, "
            f"{_shown(known)}, got {_shown(value)}; shards are written by the same versions and options"
        )


def _shown(value: Any) -> str:
    return visible(json.dumps(value, sort_keys=True), 200)
