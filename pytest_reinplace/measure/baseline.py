"""The file of one device's baselines: what each entry cost when it was recorded."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..base import whole_file
from ..entry.located import EntryError, Located, read
from ..record.figures import EAGER, STOCK, Measurement, Side
from ..record.paired import ratio

SCHEMA = 1
FOLDER = "baselines"
METRICS = ("clones", "clone_bytes", "peak_bytes", "runtime_ns", "ratio_ppm")
_EXACT = METRICS[:3]
_SLUG = re.compile(r"[a-z0-9_.-]+")
_HEAD = """\
# Written by `pytest --reinplace-update`; figures of the named device only. Clones and bytes are exact. All
# sides run in turns: runtime_ns is the median, ratio_ppm the upper bound (99.9 %) of the runtime divided by
# that of Inductor's pass, in millionths. The gate compares ratio_ppm.
"""


class BaselineError(Exception):
    """A file of baselines cannot be used. The message names file and line, and what was expected."""


@dataclasses.dataclass(frozen=True, slots=True)
class Baselines:
    """What a file of baselines holds.

    Args:
        entries: for each entry, for each of its sides, figures by metric: whole numbers.
        taken: what they were taken with, by entry: versions, and the commit.
    """

    entries: Mapping[str, Mapping[str, Mapping[str, int]]] = dataclasses.field(default_factory=dict)
    taken: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)


def path_of(folder: Path, slug: str) -> Path:
    """Return the file for a device."""
    return folder / f"{slug}.yaml"


def load(path: Path) -> Baselines:
    """Read a file of baselines.

    Raises:
        BaselineError: it is none, is damaged, or of a newer version.
    """
    try:
        document = read(path)
        schema = document.mapping().get("schema")
        if schema is None or schema.value != SCHEMA:
            is_newer = schema is not None and isinstance(schema.value, int) and schema.value > SCHEMA
            hint = "; it is of a newer pytest-reinplace: upgrade" if is_newer else ""
            came = "none" if schema is None else repr(schema.plain())
            raise (schema or document).error(f"expected schema: {SCHEMA}, got {came[:60]}{hint}")
        keys = document.record(("schema", "device", "entries"), ())
        keys["device"].string()
        whole = {
            name: item.record(("taken", "sides"), ()) for name, item in keys["entries"].mapping().items()
        }
        return Baselines(
            {name: _sides(item["sides"]) for name, item in whole.items()},
            {name: _texts(item["taken"]) for name, item in whole.items()},
        )
    except EntryError as error:
        raise BaselineError(str(error)) from None


def _sides(item: Located) -> dict[str, dict[str, int]]:
    found = {}
    for side, figures in item.mapping().items():
        kept = figures.record((), METRICS)
        for figure in kept.values():
            if isinstance(figure.value, bool) or not isinstance(figure.value, int) or figure.value < 0:
                raise figure.expected("a whole number, 0 or larger")
        found[side] = {metric: figure.value for metric, figure in kept.items()}
    return found


def _texts(item: Located) -> dict[str, str]:
    return {name: value.string() for name, value in item.mapping().items()}


def figures_of(side: Side, stock: Side | None = None) -> dict[str, int]:
    """Return a side's figures as they are recorded, beside Inductor's side of the same rounds."""
    found = side.exact
    if side.runtime is not None:
        found["runtime_ns"] = round(side.runtime * 1e9)
    times = None if stock is None or stock is side else ratio(side.times, stock.times)
    if times is not None:
        found["ratio_ppm"] = round(times.high * 1e6)
    return found


def recorded(old: Baselines, new: Measurement) -> dict[str, Mapping[str, int]]:
    """Return an entry's figures with those of a new measurement; a pass not measured now keeps its own."""
    before = old.entries.get(new.entry, {})
    stock = new.sides.get(STOCK)
    return {**before, **{name: figures_of(side, stock) for name, side in new.sides.items()}}


def write(path: Path, slug: str, baselines: Baselines) -> None:
    """Write a file of baselines whole, sorted.

    Raises:
        OSError: it cannot be written; what was there before still is.
        ValueError: the slug is no name of a file.
    """
    if not _SLUG.fullmatch(slug):
        raise ValueError(f"expected a device's slug of small letters, digits, '_', '.' and '-', got {slug!r}")
    import yaml

    entries = {
        name: {
            "sides": {side: dict(figures) for side, figures in sides.items()},
            "taken": dict(baselines.taken.get(name, {})),
        }
        for name, sides in baselines.entries.items()
    }
    data: dict[str, Any] = {"schema": SCHEMA, "device": slug, "entries": entries}
    text = yaml.safe_dump(data, sort_keys=True, default_flow_style=False, width=110)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole_file.write(path, _HEAD + text)


def changes(old: Mapping[str, Mapping[str, int]], new: Mapping[str, Mapping[str, int]]) -> Iterable[str]:
    """Yield what changes in an entry, ``"exact peak_bytes: 64 → 32"``; runtimes differ at every run."""
    for side in sorted({*old, *new}, key=lambda name: (name != EAGER, name)):
        before, now = old.get(side, {}), new.get(side, {})
        for metric in _EXACT:
            if before.get(metric) != now.get(metric):
                yield f"{side} {metric}: {before.get(metric, '-')} → {now.get(metric, '-')}"
