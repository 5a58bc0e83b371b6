"""A page as a parser sees it: what must hold of every page, whatever is on it."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

_VOID = frozenset({"meta", "link", "input", "br", "wbr"})
# What one may leave open: html.parser knows no implied ends, and the page relies on none.
_RAW = frozenset({"style", "script"})


class Page(HTMLParser):
    """The elements of a page: their ids, links and texts. What is wrong with it is in ``problems``."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.problems += [f"{tag} is never closed" for tag in self._open]
        self.problems += [f"id {one} is there twice" for one, n in Counter(self.ids).items() if n > 1]
        targets = {f"#{one}" for one in self.ids}
        self.problems += [f"{x} leads nowhere" for x in self.links if x.startswith("#") and x not in targets]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in _VOID:
            self._open.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.problems.append(f"{tag} has {name}={value!r}")
            if name == "id":
                self.ids.append(value or "")
            if name == "href" and tag == "a":
                self.links.append(value or "")
            if name == "src" or (name in ("href", "action") and _leads_out(value or "")):
                self.problems.append(f"{tag} loads or leads to {value!r}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"{tag} is closed where it is not open, line {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in _RAW:
            if re.search(r"@import|url\(|https?:|fetch\(|eval\(|innerHTML", data):
                self.problems.append(f"{self._open[-1]} reaches outside, or makes elements of text")
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All that is written on it."""
        return "".join(self.texts)


def _leads_out(link: str) -> bool:
    """Return whether a link has a scheme or a host; the empty icon has neither."""
    return link != "data:," and (":" in link.partition("#")[0] or link.startswith("//"))
