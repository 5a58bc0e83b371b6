"""The table of ``docs/lowering-copies.md``, of copies that lowering adds to the corpus: a command.

``python -m benchmarks.lowering_table report.json...`` writes it, of reports that
``pytest corpus --reinplace-backend=inductor --reinplace-pass=exact --reinplace-json=report.json`` wrote.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "lowering-copies.md"
_HEADS = ("entry", "bytes", "count", "copy", "cause", "line")
_TABLE = re.compile(r"(<!-- table: python -m benchmarks.lowering_table -->\n).*?(<!-- end -->)", re.DOTALL)
# Where the corpus lies once it is installed, and torch.
_ROOT = re.compile(r".*?(?=corpus/)|.*/site-packages/")


def rows(reports: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return a row for each entry, label, cause and line; an entry's largest copies first."""
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for nodeid, graph in _graphs(reports):
        for copy in graph.get("copies") or ():
            if not copy["meant"]:
                line = _ROOT.sub("", copy["source"] or "", count=1)
                label = re.sub(r"\[\d+\]", "[*]", copy["label"])  # all elements of a list in one row
                key = nodeid.rpartition("::")[2], label, copy["cause"], line
                found.setdefault(key, []).append(copy["nbytes"])
    ordered = sorted(found.items(), key=lambda one: (one[0][0], -sum(one[1]), one[0]))
    return [
        (entry, str(sum(sizes)), str(len(sizes)), label, cause, line)
        for (entry, label, cause, line), sizes in ordered
    ]


def summary(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return how many entries were lowered, and in how many of them lowering adds a copy."""
    lowered = {nodeid for nodeid, graph in _graphs(reports) if graph.get("copies") is not None}
    unknown = {nodeid for nodeid, graph in _graphs(reports) if graph.get("unlowered")}
    copying = {row[0] for row in rows(reports)}
    text = f"Of {len(lowered)} entries lowering adds copies to {len(copying)}"
    return text + (f"; of {len(unknown)} nothing is known." if unknown else ".")


def table(found: Iterable[Sequence[str]]) -> str:
    """Return rows as a table of Markdown."""
    lines = [_HEADS, ["---", "--:", "--:", "---", "---", "---"]]
    cells = [
        [entry, size, count, f"`{label}`", cause, line] for entry, size, count, label, cause, line in found
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in [*lines, *cells])


def written(page: str, reports: Sequence[Mapping[str, Any]]) -> str:
    """Return a page with the table in its place; raises ``ValueError`` where it has none."""
    if _TABLE.search(page) is None:
        raise ValueError("expected the page to have a place for the table, found none")
    text = f"\n{summary(reports)}\n\n{table(rows(reports))}\n\n"
    return _TABLE.sub(lambda place: place[1] + text + place[2], page)


def _graphs(reports: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for report in reports:
        for nodeid, test in report["tests"].items():
            for graph in test["graphs"]:
                yield nodeid, graph


def main(paths: Sequence[str]) -> None:
    """Write the table of these reports into the page."""
    reports = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), reports), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
