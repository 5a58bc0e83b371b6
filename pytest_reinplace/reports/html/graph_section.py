"""The part of the page about one graph: its chart, and its lines with what became of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ...base.visible import brief, visible
from ...base.wording import bytes_of, plural
from ...picture.listing import Line, abridged
from ...record import ledgers, plain
from ...record.counts import counts_of
from ..clone import Clone
from ..finding import Finding
from ..pass_by_pass import milliseconds
from .chart import chart
from .diff import Row, compared, folded, places
from .highlight import highlighted
from .source_link import SourceLinks

_MOST_BLOCKERS = 6
_MOST_LOOSE = 20
_MOST_TEXT = 3000
_APPLICATIONS, _FEW_APPLICATIONS = 100, 10


@dataclasses.dataclass(frozen=True, slots=True)
class GraphSection:
    """One graph of a document, as the template wants it.

    Args:
        id: of its element, unique on the page.
        test: the id of its test.
        position: of the graph in the test.
        outcome: of the test.
        data: the graph.
        clones: its clones, largest first.
        links: to sources.
        findings: what is wrong with it, or not known.
        sources: the ids of the lines that copy in it, by their sources.
    """

    id: str
    test: str
    position: int
    outcome: str
    data: Mapping[str, Any]
    clones: Sequence[Clone]
    links: SourceLinks
    findings: Sequence[Finding] = ()
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def shown(self, most: int) -> dict[str, Any]:
        """Return the values of the template, with at most ``most`` lines of each listing; 0 for none."""
        picture = self.data["picture"]
        lines = self.lines(most)
        views: dict[str, list[dict[str, Any]]] = {}
        loose = []
        for clone in self.clones:
            view = self._view(clone, lines)
            if self.line_of(clone, lines):
                views.setdefault(clone.data["node"], []).append(view)
            else:
                loose.append(view)
        counts = counts_of([self.data])
        return {
            "id": self.id,
            "test": brief(self.test),
            "sources": " ".join(dict.fromkeys(self.sources[c.source] for c in self.clones)),
            "candidates": plural(counts["candidates"], "candidate"),
            "outcome": self.outcome,
            "name": brief(self.data["graph"]),
            "text": self._text(),
            "counts": counts,
            "bytes": bytes_of(counts["clone_bytes"]),
            "pass_name": brief(self.data["pass"]),
            "backend": brief(self.data["backend"]),
            "notices": self._notices(most),
            "chart": chart(picture["memory"], lines) if picture else None,
            "before": self._before(picture, lines, views, most) if picture and most else [],
            "after": self._after(picture, most) if picture and most else [],
            "whole": bool(picture and most) and self._is_whole(picture, most),
            "loose": loose[:_MOST_LOOSE],
            "passes": self._passes(_APPLICATIONS if most else _FEW_APPLICATIONS),
        }

    def lines(self, most: int) -> dict[str, str]:
        """Return the ids of the lines that :meth:`shown` marks in the functional graph, by node."""
        picture = self.data["picture"]
        return self._ids(picture["before"], most) if picture and most else {}

    @staticmethod
    def line_of(clone: Clone, lines: Mapping[str, str]) -> str | None:
        """Return the id of a clone's line, ``None`` for one in a subgraph: its name means another node."""
        return None if clone.data["graph"] else lines.get(clone.data["node"])

    def _text(self) -> str:
        """Return what the filter looks at."""
        found = [self.test, self.data["graph"], *dict.fromkeys(o["label"] for o in self.data["outcomes"])]
        found += dict.fromkeys(f"{c.source} {c.sentence}" for c in self.clones)
        return visible(" ".join(map(str, found)), _MOST_TEXT)

    def _notices(self, most: int) -> list[str]:
        found = [brief(one.whole) for one in self.findings]
        picture = self.data["picture"]
        if picture is None:
            found.append("This graph was not drawn.")
        elif not most:
            found.append("The listings are left out: the page would be too large. The JSON file has them.")
        else:
            total = picture["memory"]["nodes"]
            if total > min(most, sum(1 for line in picture["before"] if line["node"])):
                found.append(
                    f"A graph of {total} nodes: only clones, what holds them back, and the lines around them "
                    "are shown."
                )
        return found

    def _passes(self, most: int) -> dict[str, Any] | None:
        """Return what passes and rules did to it, what is wrong first; ``None`` where that is not known."""
        found = self.data.get("applications")
        if found is None:
            return None
        applied = plain.applied()
        rows = sorted(found, key=lambda one: not applied.is_wrong(one))[:most]
        return {
            "title": "passes that changed it: " + plural(len(found), "application"),
            "rows": [self._application(one) for one in rows],
            "more": len(found) - len(rows),
            "note": brief(ledgers.unchecked_in(self.data)),
        }

    def _application(self, one: Mapping[str, Any]) -> dict[str, Any]:
        applied, source = plain.applied(), one["source"] or ""
        return {
            "number": one["number"],
            "graph": brief(one["graph"]),
            "name": brief(f"{one['stage'] or 'pipeline'} / {applied.name_of(one)}"),
            "node": brief(one["node"]),
            "source": brief(source),
            "href": self.links.href(source) if source else None,
            "change": brief(applied.change_of(one)),
            "ms": milliseconds(one["seconds"]),
            "is_wrong": applied.is_wrong(one),
        }

    def _telling(self) -> set[str]:
        mine = [clone.data for clone in self.clones if not clone.data["graph"]]
        nodes = {data["node"] for data in mine} | {b["node"] for data in mine for b in data["blockers"]}
        return nodes | self._wrong()

    def _wrong(self) -> set[str]:
        """Return the nodes that are the first to compute something else."""
        return {one.node.partition(" ")[0] for one in self.findings if one.node}

    def _place(self) -> dict[str, str]:
        """Return the labels of the candidates that are in place, by node."""
        return {o["node"]: o["label"] for o in self.data["outcomes"] if o["reinplaced"] and not o["graph"]}

    def _ids(self, lines: Sequence[Mapping[str, str]], most: int) -> dict[str, str]:
        """Return an id for each line that is shown and marked, by node; one for several of a name."""
        found: dict[str, str] = {}
        marked = self._telling() | set(self._place()) | self._held() | self._wrong()
        for position, line in enumerate(self._abridged(lines, most)):
            if line.node in marked:
                found.setdefault(line.node, f"{self.id}l{position}")
        return found

    def _held(self) -> set[str]:
        """Return the nodes whose values are shown as held at the peak."""
        peak = self.data["picture"]["memory"].get("peak")
        return {value["node"] for value in peak["values"]} if peak else set()

    @staticmethod
    def _is_whole(picture: Any, most: int) -> bool:
        """Return whether each node has its line among those that are shown."""
        nodes = picture["memory"]["nodes"]
        return len(picture["before"]) == nodes <= most and all(line["node"] for line in picture["before"])

    def _abridged(self, lines: Sequence[Mapping[str, str]], most: int) -> list[Line]:
        return abridged([Line(line["node"], line["text"]) for line in lines], self._telling(), most)

    def _before(
        self, picture: Any, ids: Mapping[str, str], views: Mapping[str, Any], most: int
    ) -> list[dict[str, Any]]:
        lines = self._abridged(picture["before"], most)
        place, wrong = self._place(), self._wrong()
        blockers = self._telling() - set(views) - wrong
        found, seen = [], set()
        for line, html in zip(lines, highlighted([line.text for line in lines]), strict=True):
            first = line.node not in seen
            seen.add(line.node)
            row = {"html": html, "kind": "", "sign": "", "title": "", "id": "", "clones": [], "copies": []}
            if line.node in wrong:
                row |= {"kind": "wrong", "sign": "✗", "title": "the first that differs"}
            elif line.node in views and first:
                row |= {"kind": "clone", "sign": "●", "title": "cloned", "clones": views[line.node]}
            elif line.node in blockers:
                row |= {"kind": "blocker", "sign": "◆", "title": "holds a clone back"}
            elif line.node in place:
                row |= {"kind": "place", "sign": "✓", "title": f"in place: {brief(place[line.node])}"}
            if first and line.node in ids:
                row["id"] = ids[line.node]
            found.append(row)
        return found

    def _after(self, picture: Any, most: int) -> list[dict[str, Any]]:
        """Return the diff; a clone that the pass left is told where it is made."""
        rows = compared(*([Line(**line) for line in picture[name]] for name in ("before", "after")))
        clones: dict[str, list[Clone]] = {}
        for clone in self.clones:
            if not clone.data["graph"]:
                clones.setdefault(clone.data["node"], []).append(clone)
        copied = places(rows, clones)
        kept = list(folded(rows, copied, most))
        texts = highlighted([row.line.text for _, row in kept])
        return [
            _changed(row, html, _copies(clones[copied[i]]) if i in copied else [])
            for (i, row), html in zip(kept, texts, strict=True)
        ]

    def _view(self, clone: Clone, ids: Mapping[str, str]) -> dict[str, Any]:
        """Return a clone as the template wants it, its blockers linked to their lines."""
        blockers = clone.data["blockers"]
        return clone_view(clone, self.links) | {
            "links": [
                {
                    "node": brief(b["node"]),
                    "op": brief(b["op"]),
                    "source": brief(b["source"] or ""),
                    "href": self.links.href(b["source"] or ""),
                    "line": None if clone.data["graph"] else ids.get(b["node"]),
                }
                for b in blockers[:_MOST_BLOCKERS]
            ],
            "more": max(0, len(blockers) - _MOST_BLOCKERS),
        }


_SIGNS = {
    "": {"kind": "", "sign": "", "title": ""},
    "-": {"kind": "gone", "sign": "\N{MINUS SIGN}", "title": "removed by the pass"},
    "+": {"kind": "new", "sign": "+", "title": "made by the pass"},
}


def _changed(row: Row, html: Any, copies: Sequence[str]) -> dict[str, Any]:
    found = {"html": html, "id": "", "clones": [], "copies": copies, **_SIGNS[row.sign]}
    return found | ({"kind": "clone", "sign": found["sign"] or "●"} if copies else {})


def _copies(clones: Sequence[Clone]) -> list[str]:
    """Return what is copied at one line."""
    found = [f"{brief(clone.data['label'])}, {bytes_of(clone.nbytes)}" for clone in clones[:_MOST_BLOCKERS]]
    left = len(clones) - len(found)
    return found + ([f"{left} more"] if left else [])


def clone_view(clone: Clone, links: SourceLinks) -> dict[str, Any]:
    """Return a clone as the templates want it."""
    return {
        "label": brief(clone.data["label"]),
        "nbytes": clone.nbytes,
        "bytes": bytes_of(clone.nbytes),
        "source": brief(clone.source),
        "href": links.href(clone.source),
        "sentence": brief(clone.sentence),
        "blockers": brief(clone.blockers),
        "hint": brief(clone.data["hint"]),
        "test": brief(clone.test),
    }
