"""The report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...base.visible import brief
from ...base.wording import bytes_of, plural
from ...compare.comparison import Comparison
from ...record.counts import counts_of
from .. import held, lowered
from ..clone import Clone, clones_of
from ..finding import Finding, checked, findings_of
from ..template import environment, text_of
from . import baseline_section, lowered_section
from .graph_section import GraphSection, clone_view
from .highlight import highlighted
from .source_link import SourceLinks
from .source_section import CopiedLine, copied_lines, treemap

if TYPE_CHECKING:
    from jinja2 import Environment

# Bytes of UTF-8. The page is under 2 MB; what a part does not use is left unused.
MOST_BYTES = 2_000_000
_MOST_GRAPHS = 800_000
_MOST_ROWS = 660_000
_MOST_COPIES = 120_000
_MOST_CALLS = 80_000
_MOST_SOURCES = 220_000
_MOST_FINDINGS = 80_000
_MOST_BASELINE = 90_000
_FINDINGS = 20
# Tests and graphs that a row of copies is shown together with.
_MOST_OWNERS = 500
# How many lines of a listing, or rows of a comparison, are tried, until the page has room for them.
_LINES = (400, 80, 0)
_CHANGES = (50, 10, 2)


class Page:
    """One page in the making.

    Args:
        report: the document.
        links: to the sources.
        comparison: with an older report, ``None`` where there is none.
    """

    def __init__(
        self, report: Mapping[str, Any], links: SourceLinks, comparison: Comparison | None = None
    ) -> None:
        self._report = report
        self._links = links
        self._comparison = comparison
        self._environment: Environment = environment(__package__)
        self._parts: Any = self._environment.get_template("parts.jinja").module
        self._clones = clones_of(report)
        self._lines_that_clone = copied_lines(self._clones)
        self._sources = {line.source: line.id for line in self._lines_that_clone}
        self._copied = lowered.copied_in(report)
        self._calls = held.calls_in(report)
        self._findings = findings_of(report)
        self._tests = {test: f"t{i}" for i, test in enumerate(sorted(report["tests"]))}
        self._ids: dict[tuple[str, int], str] = {}
        self._lines: dict[tuple[str, int], Mapping[str, str]] = {}
        self._notices: list[str] = []

    def html(self) -> str:
        """Return the page: the same text for the same document."""
        from markupsafe import Markup

        report = self._report
        graphs = self._graphs()
        lines = self._lines_that_clone
        sources = self._fitting("lines", lines, self._source, _MOST_SOURCES)
        boxes = treemap(lines, [line.id for line in lines[: len(sources)]])
        style = text_of("page.css", __package__) + (boxes.style if boxes else "")
        script = text_of("page.js", __package__)
        tables = self._tables()
        return self._environment.get_template("page.jinja").render(
            style=Markup(style),
            script=Markup(script),
            style_hash=_hash(style),
            script_hash=_hash(script),
            versions={name: version and brief(version) for name, version in report["versions"].items()},
            total=report["total"],
            sums=_sums(report["total"], self._copied),
            pass_name=report["pass"] and brief(report["pass"]),
            backend=report["backend"] and brief(report["backend"]),
            verified=_verified(report),
            findings=self._findings_shown(),
            findings_left=max(0, len(self._findings) - _FINDINGS),
            baseline=self._baseline({test for test, _ in zip(self._tests, tables["tests"], strict=False)}),
            baseline_name=self._comparison and brief(self._comparison.old_name),
            notices=self._notices,
            boxes=boxes,
            sources=sources,
            graphs=[Markup(graph) for graph in graphs],
            **tables,
        )

    def _tables(self) -> dict[str, Any]:
        """Return the tables; clones and tests have what the two others leave."""
        from markupsafe import Markup

        copies = self._fitting("copies that lowering adds", self._copied, self._copied_row, _MOST_COPIES)
        calls = self._fitting("measured calls", self._calls, self._call_row, _MOST_CALLS)
        each = (_MOST_ROWS - sum(len(row.encode()) for row in [*copies, *calls])) // 2
        count = plural(sum(len(group.copies) for group in self._copied), "copy") if copies else ""
        return {
            "clones": self._fitting("clones", self._clones, self._clone_row, each),
            "tests": self._fitting("tests", list(self._tests), self._test_row, each),
            "copied": {"heads": lowered.HEADS, "rows": copies},
            "held": {"heads": held.FIGURES, "note": held.NOTE, "rows": calls},
            "no_clone": "" if self._clones else Markup(self._parts.no_clone(count)),
        }

    def _graphs(self) -> list[str]:
        """Return the graphs in the order of the document; those with most to tell get the room there is."""
        sections = list(self._sections())
        order = sorted(
            range(len(sections)), key=lambda i: (not sections[i].findings, -sections[i].data["clone_bytes"])
        )
        found: dict[int, str] = {}
        left = _MOST_GRAPHS
        for position in order:
            text = self._graph(sections[position], left)
            if text is None:
                break  # what would fit into the little that is left is not looked for
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
            text = (
                str(self._parts.graph(section.shown(most), self._tests[section.test])) if left > 2000 else ""
            )
            if text and len(text.encode()) <= left:
                self._lines[section.test, section.position] = section.lines(most)
                return text
        return None

    def _sections(self) -> Iterator[GraphSection]:
        clones: dict[tuple[str, int], list[Clone]] = {}
        for clone in self._clones:
            clones.setdefault((clone.test, clone.graph), []).append(clone)
        findings: dict[tuple[str, int], list[Finding]] = {}
        for finding in self._findings:
            findings.setdefault((finding.test, finding.graph), []).append(finding)
        for test, data in sorted(self._report["tests"].items()):
            for position, graph in enumerate(data["graphs"]):
                key = test, position
                self._ids[key] = f"g{len(self._ids)}"
                yield GraphSection(
                    id=self._ids[key],
                    test=test,
                    position=position,
                    outcome=data["outcome"],
                    data=graph,
                    clones=clones.get(key, []),
                    links=self._links,
                    findings=findings.get(key, []),
                    sources=self._sources,
                )

    def _clone_row(self, clone: Clone) -> str:
        outcome = self._report["tests"][clone.test]["outcome"]
        graph = self._ids.get((clone.test, clone.graph), "")
        line = GraphSection.line_of(clone, self._lines.get((clone.test, clone.graph), {})) or graph
        belongs = {"source": self._sources[clone.source], "graph": graph, "test": self._tests[clone.test]}
        return str(self._parts.clone_row(clone_view(clone, self._links), line, outcome, belongs))

    def _copied_row(self, group: lowered.Copied) -> str:
        outcomes = {test: self._report["tests"][test]["outcome"] for test in group.tests}
        source = group.copies[0].source
        graphs = [self._ids[key] for key in group.graphs[:_MOST_OWNERS] if key in self._ids]
        belongs = {
            "source": self._sources.get(source, "") if source else "",
            "graphs": " ".join(graphs),
            "tests": " ".join(self._tests[test] for test in group.tests[:_MOST_OWNERS]),
        }
        view = lowered_section.copied_view(group, outcomes, self._links)
        return str(self._parts.copied_row(view, graphs[0] if graphs else None, belongs))

    def _call_row(self, call: held.Call) -> str:
        outcome = self._report["tests"][call.test]["outcome"]
        graph, view = self._ids.get((call.test, 0)), lowered_section.call_view(call)
        return str(self._parts.call_row(view, outcome, graph, self._tests[call.test]))

    def _test_row(self, test: str) -> str:
        data = self._report["tests"][test]
        counts = counts_of(data["graphs"])
        size = bytes_of(counts["clone_bytes"])
        graph = self._ids.get((test, 0))
        return str(self._parts.test_row(brief(test), self._tests[test], graph, data["outcome"], counts, size))

    def _source(self, line: CopiedLine) -> str:
        return str(self._parts.source_section(line.shown(self._links), line is self._lines_that_clone[0]))

    def _findings_shown(self) -> list[str]:
        """Return the findings, those that are wrong first, with the user's lines while there is room."""
        from markupsafe import Markup

        left = _MOST_FINDINGS
        found: list[str] = []
        for finding in self._findings[:_FINDINGS]:
            lines = self._links.excerpt(finding.source)
            node = finding.node.partition(" ")[0]
            view = {
                "test": brief(finding.test),
                "graph": self._ids.get((finding.test, finding.graph)),
                "kind": finding.kind,
                "text": brief(finding.text),
                "node": brief(finding.node),
                "line": self._lines.get((finding.test, finding.graph), {}).get(node),
                "source": brief(finding.source),
                "href": self._links.href(finding.source),
                "since": brief(finding.since),
                "lines": [
                    {"number": line.number, "html": html, "is_asked": line.is_asked}
                    for line, html in zip(lines, highlighted([x.text for x in lines]), strict=True)
                ],
            }
            text = str(self._parts.finding(view))
            if len(text.encode()) > left:
                text = str(self._parts.finding(view | {"lines": []}))
            left -= len(text.encode())
            found.append(Markup(text))
        return found

    def _baseline(self, tests: set[str]) -> str | None:
        from markupsafe import Markup

        if self._comparison is None:
            return None
        hrefs = {test: name for test, name in self._tests.items() if test in tests}
        text = ""
        for most in _CHANGES:
            text = str(self._parts.baseline(baseline_section.shown(self._comparison, hrefs, most)))
            if len(text.encode()) <= _MOST_BASELINE:
                break
        return Markup(text)

    def _fitting(self, what: str, rows: Sequence[Any], drawn: Callable[[Any], str], left: int) -> list[str]:
        """Return as many rows as there is room for."""
        from markupsafe import Markup

        found: list[str] = []
        for row in rows:
            text = drawn(row)
            left -= len(text.encode())
            if left < 0:
                break
            found.append(Markup(text))
        if len(found) < len(rows):
            self._notices.append(
                f"The table of {what} shows {len(found)} of {len(rows)}; the JSON file has them all."
            )
        return found


def page(report: Mapping[str, Any], links: SourceLinks, comparison: Comparison | None = None) -> str:
    """Return the report as a page of less than ``MOST_BYTES``.

    Args:
        report: the document.
        links: to the sources.
        comparison: with an older report, where there is one.
    """
    return Page(report, links, comparison).html()


def _sums(total: Mapping[str, int], copied: Sequence[lowered.Copied]) -> list[tuple[str, str]]:
    """Return the sums at the head: of the graphs, of the clones, and of what lowering copies besides."""
    nouns = ("test", "graph", "candidate")
    counted = [(plural(total[f"{noun}s"], noun).partition(" ")[2], str(total[f"{noun}s"])) for noun in nouns]
    told = [("in place", str(total["reinplaced"])), ("cloned", str(total["cloned"]))]
    told.append(("bytes cloned", bytes_of(total["clone_bytes"])))
    if copied:
        told.append(("copied by lowering", str(sum(len(group.copies) for group in copied))))
        told.append(("bytes copied by lowering", bytes_of(sum(group.nbytes for group in copied))))
    return [*counted, *told]


def _verified(report: Mapping[str, Any]) -> str:
    """Return how many graphs were held against what they should compute, empty where none was."""
    count, wrong, unknown = checked(report)
    if not count and not unknown:
        return ""
    return f"Compared on their first calls: {plural(count, 'graph')}, {wrong} wrong, {unknown} not checked."


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
