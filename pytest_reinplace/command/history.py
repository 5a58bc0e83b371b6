"""``pytest-reinplace history``: how the figures of each test went over several reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base import whole_file
from ..base.visible import visible
from ..compare import trend_text
from ..compare.trend import Trend, trends
from ..record import stored
from ..record.stored import Stored
from ..reports import exports, trend_chart
from ..reports.template import missing
from .errors import CommandError

# When a report was taken, where a hook adds that: a text that sorts by time, as 2026-11-26T04:17:59Z.
_TAKEN = "taken"


def run(
    paths: Sequence[Path], as_markdown: bool, svg: Path | None, bencher: Path | None, pytorch: Path | None
) -> int:
    """Print the trends, and write the files that are asked for; returns the exit code.

    Raises:
        stored.StoredError: a report cannot be used.
        CommandError: a folder holds none, a package is missing, or a file cannot be written.
    """
    if svg is not None and (absent := missing()):
        raise CommandError(f"--svg: needs {' and '.join(absent)}: pip install {' '.join(absent)}")
    reports = [report for path in paths for report in _reports(path)]
    found, names = trends(reports), [report.name for report in reports]
    if svg is not None:
        _write("--svg", svg, trend_chart.chart(found))
    if bencher is not None:
        _write("--bencher", bencher, _json(exports.bencher(reports[-1])))
    if pytorch is not None:
        _write("--pytorch", pytorch, _json(exports.pytorch(reports[-1], _targets(found))))
    if as_markdown:
        print(trend_text.markdown(found, names), end="")
    else:
        print(*trend_text.text(found, names), sep="\n")
    return 0


def _reports(path: Path) -> list[Stored]:
    """Return a report, or those of a folder: by when they were taken where each says so, else by name."""
    if not path.is_dir():
        return [stored.read(path)]
    found = [stored.read(one) for one in sorted(path.glob("*.json"))]
    if not found:
        raise CommandError(
            f"{visible(path)}: expected reports of --reinplace-json, got a folder without *.json"
        )
    taken = [report.document.get(_TAKEN) for report in found]
    if all(isinstance(one, str) for one in taken):
        found.sort(key=lambda report: str(report.document[_TAKEN]))
    return found


def _targets(found: Sequence[Trend]) -> dict[tuple[str, str], float]:
    """Return the first figures of what has one before the last report: a later one is held against it."""
    before = [trend for trend in found if any(value is not None for value in trend.values[:-1])]
    return {(trend.nodeid, trend.metric): trend.first for trend in before}


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def _write(option: str, path: Path, text: str) -> None:
    try:
        whole_file.write(path, text)
    except OSError as error:
        raise CommandError(f"{option}: cannot write {visible(path)}: {error.strerror or error}") from None
