"""The report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...base.visible import brief
from ...base.wording import bytes_of
from ...record.counts import counts_of
from ..clone import Clone, clones_of, remarks_of
from ..template import environment, text_of
from .graph_section import GraphSection, clone_view
from .source_link import SourceLinks

if TYPE_CHECKING:
    from jinja2 import Environment

# Bytes of UTF-8. The page is under 2 MB; what a part does not use is left unused.
MOST_BYTES = 2_000_000
_MOST_GRAPHS = 1_000_000
_MOST_ROWS = 430_000
_REMARKS = 20
# How many lines of a listing are tried, until the page has room for them.
_LINES = (400, 80, 0)


class Page:
    """One page in the making.

    Args:
        report: the document.
        links: to the sources.
    """

    def __init__(self, report: Mapping[str, Any], links: SourceLinks) -> None:
        self._report = report
        self._links = links
        self._environment: Environment = environment(__package__)
        self._parts: Any = self._environment.get_template("parts.jinja").module
        self._clones = clones_of(report)
        self._ids: dict[tuple[str, int], str] = {}
        self._lines: dict[tuple[str, int], Mapping[str, str]] = {}
        self._notices: list[str] = []

    def html(self) -> str:
        """Return the page: the same text for the same document."""
        style, script = text_of("page.css", __package__), text_of("page.js", __package__)
        report, remarks = self._report, remarks_of(self._report)
        from markupsafe import Markup

        graphs = self._graphs()
        clones = self._fitting("clones", [self._clone_row(clone) for clone in self._clones])
        tests = self._fitting("tests", list(self._test_rows()))
        return self._environment.get_template("page.jinja").render(
            style=Markup(style),
            script=Markup(script),
            style_hash=_hash(style),
            script_hash=_hash(script),
            versions={name: version and brief(version) for name, version in report["versions"].items()},
            total=report["total"],
            sums=_sums(report["total"]),
            pass_name=report["pass"] and brief(report["pass"]),
            backend=report["backend"] and brief(report["backend"]),
            remarks=[(brief(one.test), brief(one.text)) for one in remarks[:_REMARKS]],
            notices=self._notices,
            graphs=[Markup(graph) for graph in graphs],
            clones=clones,
            tests=tests,
        )

    def _graphs(self) -> list[str]:
        """Return the graphs in the order of the document; those with most to tell get the room there is."""
        sections = list(self._sections())
        order = sorted(range(len(sections)), key=lambda i: -sections[i].data["clone_bytes"])
        found: dict[int, str] = {}
        left = _MOST_GRAPHS
        for position in order:
            text = self._graph(sections[position], left)
            if text is not None:
                left -= len(text.encode())
                found[position] = text
        if len(found) < len(sections):
            self._notices.append(
                f"{len(sections) - len(found)} of {len(sections)} graphs are left out: the page would be too "
                "large. The JSON file has them."
            )
        shown = {sections[i].id for i in found}
        self._ids = {key: name for key, name in self._ids.items() if name in shown}
        return [found[position] for position in sorted(found)]

    def _graph(self, section: GraphSection, left: int) -> str | None:
        for most in _LINES:
            # A line takes a hundred bytes and more: what cannot fit is not tried.
            if most and 100 * min(most, len((section.data["picture"] or {}).get("before", ()))) > left:
                continue
            text = str(self._parts.graph(section.shown(most))) if left > 2000 else ""
            if text and len(text.encode()) <= left:
                self._lines[section.test, section.position] = section.lines(most)
                return text
        return None

    def _sections(self) -> Iterator[GraphSection]:
        clones: dict[tuple[str, int], list[Clone]] = {}
        for clone in self._clones:
            clones.setdefault((clone.test, clone.graph), []).append(clone)
        for test, data in sorted(self._report["tests"].items()):
            for position, graph in enumerate(data["graphs"]):
                key = test, position
                self._ids[key] = f"g{len(self._ids)}"
                mine = clones.get(key, [])
                yield GraphSection(self._ids[key], test, position, data["outcome"], graph, mine, self._links)

    def _clone_row(self, clone: Clone) -> str:
        outcome = self._report["tests"][clone.test]["outcome"]
        line = GraphSection.line_of(clone, self._lines.get((clone.test, clone.graph), {}))
        href = f"#{line}" if line else self._href(clone.test, clone.graph)
        return str(self._parts.clone_row(clone_view(clone, self._links), href, outcome))

    def _test_rows(self) -> Iterator[str]:
        for test, data in sorted(self._report["tests"].items()):
            counts = counts_of(data["graphs"])
            size = bytes_of(counts["clone_bytes"])
            href = self._href(test, 0)
            yield str(self._parts.test_row(brief(test), href, data["outcome"], counts, size))

    def _href(self, test: str, graph: int) -> str | None:
        name = self._ids.get((test, graph))
        return f"#{name}" if name else None

    def _fitting(self, what: str, rows: list[str]) -> list[str]:
        """Return as many rows as there is room for."""
        from markupsafe import Markup

        left = _MOST_ROWS
        found: list[str] = []
        for row in rows:
            left -= len(row.encode())
            if left < 0:
                break
            found.append(Markup(row))
        if len(found) < len(rows):
            self._notices.append(
                f"The table of {what} shows {len(found)} of {len(rows)}; the JSON file has them all."
            )
        return found


def page(report: Mapping[str, Any], links: SourceLinks) -> str:
    """Return the report as a page of less than ``MOST_BYTES``.

    Args:
        report: the document.
        links: to the sources.
    """
    return Page(report, links).html()


def _sums(total: Mapping[str, int]) -> list[tuple[str, str]]:
    names = {"tests": "tests", "graphs": "graphs", "candidates": "candidates"}
    names |= {"reinplaced": "in place", "cloned": "cloned"}
    return [(shown, str(total[name])) for name, shown in names.items()] + [
        ("bytes cloned", bytes_of(total["clone_bytes"]))
    ]


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
