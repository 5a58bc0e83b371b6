"""The part of the page about one graph: its chart, and its lines with what became of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ...base.visible import brief, visible
from ...base.wording import bytes_of, suspicion
from ...picture.listing import Line, abridged
from ...record.counts import counts_of
from ..clone import Clone
from .chart import chart
from .highlight import highlighted
from .source_link import SourceLinks

_MOST_BLOCKERS = 6
_MOST_LOOSE = 20
_MOST_TEXT = 3000


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
    """

    id: str
    test: str
    position: int
    outcome: str
    data: Mapping[str, Any]
    clones: Sequence[Clone]
    links: SourceLinks

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
            "outcome": self.outcome,
            "name": brief(self.data["graph"]),
            "text": self._text(),
            "counts": counts,
            "bytes": bytes_of(counts["clone_bytes"]),
            "pass_name": brief(self.data["pass"]),
            "backend": brief(self.data["backend"]),
            "notices": self._notices(most),
            "chart": chart(picture["memory"], {node: lines[node] for node in views}) if picture else None,
            "before": self._before(picture, lines, views, most) if picture and most else [],
            "after": self._after(picture, most) if picture and most else [],
            "loose": loose[:_MOST_LOOSE],
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
        found = []
        if self.data["problem"]:
            found.append(f"Could not be judged: {brief(self.data['problem'])}")
        if self.data["suspicious"]:
            text = suspicion("It", self.data["suspicious"], self.data.get("verified"))
            found.append(visible(text))
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

    def _telling(self) -> set[str]:
        mine = [clone.data for clone in self.clones if not clone.data["graph"]]
        return {data["node"] for data in mine} | {b["node"] for data in mine for b in data["blockers"]}

    def _place(self) -> dict[str, str]:
        """Return the labels of the candidates that are in place, by node."""
        return {o["node"]: o["label"] for o in self.data["outcomes"] if o["reinplaced"] and not o["graph"]}

    def _ids(self, lines: Sequence[Mapping[str, str]], most: int) -> dict[str, str]:
        """Return an id for each line that is shown and marked, by node; one for several of a name."""
        found: dict[str, str] = {}
        marked = self._telling() | set(self._place())
        for position, line in enumerate(self._abridged(lines, most)):
            if line.node in marked:
                found.setdefault(line.node, f"{self.id}l{position}")
        return found

    def _abridged(self, lines: Sequence[Mapping[str, str]], most: int) -> list[Line]:
        return abridged([Line(line["node"], line["text"]) for line in lines], self._telling(), most)

    def _before(
        self, picture: Any, ids: Mapping[str, str], views: Mapping[str, Any], most: int
    ) -> list[dict[str, Any]]:
        lines = self._abridged(picture["before"], most)
        place = self._place()
        blockers = self._telling() - set(views)
        found, seen = [], set()
        for line, html in zip(lines, highlighted([line.text for line in lines]), strict=True):
            first = line.node not in seen
            seen.add(line.node)
            row = {"html": html, "kind": "", "sign": "", "title": "", "id": "", "clones": []}
            if line.node in views and first:
                row |= {"kind": "clone", "sign": "●", "title": "cloned", "clones": views[line.node]}
            elif line.node in blockers:
                row |= {"kind": "blocker", "sign": "◆", "title": "holds a clone back"}
            elif line.node in place:
                row |= {"kind": "place", "sign": "✓", "title": f"in place: {brief(place[line.node])}"}
            if row["kind"] and first:
                row["id"] = ids[line.node]
            found.append(row)
        return found

    def _after(self, picture: Any, most: int) -> list[dict[str, Any]]:
        lines = self._abridged(picture["after"], most)
        before = {line["node"] for line in picture["before"]}
        whole = "" not in before
        cloned = {clone.data["node"] for clone in self.clones if not clone.data["graph"]}
        found = []
        for line, html in zip(lines, highlighted([line.text for line in lines]), strict=True):
            row = {"html": html, "kind": "", "sign": "", "title": "", "id": "", "clones": []}
            if line.node in cloned:
                row |= {"kind": "clone", "sign": "●", "title": "cloned"}
            elif whole and line.node and line.node not in before:
                row |= {"kind": "new", "sign": "+", "title": "made by the pass"}
            found.append(row)
        return found

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
