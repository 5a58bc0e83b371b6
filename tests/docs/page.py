"""A page of docs/ as a project: titled code blocks are files, ``prints`` blocks what running them prints."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from ..house.checkout import ROOT

DOCS = ROOT / "docs"
_FENCE = re.compile(
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_PRINTS = " prints"


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """One fenced block.

    Args:
        language: what stands behind the fence.
        title: its ``title="..."``, empty where there is none.
        text: the lines between the fences.
        line: where it begins in its page.
        span: where the text lies in the page's text.
    """

    language: str
    title: str
    text: str
    line: int
    span: tuple[int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A file of a page that is run, and what it must print (``None``: it must pass)."""

    file: Block
    prints: Block | None


def pages() -> list[Path]:
    """Return every page, and the README."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name(path: Path) -> str:
    """Return a page's path as its tests are called."""
    return path.relative_to(ROOT).as_posix()


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(found["language"], found["title"] or "", found["text"], line, found.span("text"))


def is_file(block: Block) -> bool:
    """Return whether a block is a file of the page's project."""
    return bool(block.title) and not block.title.endswith(_PRINTS)


def is_run(block: Block) -> bool:
    """Return whether a block is a file that pytest collects."""
    return is_file(block) and re.fullmatch(r"test_\w+\.py|.+\.reinplace\.yaml", block.title) is not None


def steps(text: str) -> list[tuple[list[Block], Step]]:
    """Return what is run in order, each with the files that have to be written before."""
    found: list[tuple[list[Block], Step]] = []
    files: list[Block] = []
    titled = [block for block in blocks(text) if block.title]
    for index, block in enumerate(titled):
        following = titled[index + 1] if index + 1 < len(titled) else None
        if not is_file(block):
            continue
        files.append(block)
        if is_run(block):
            red = following is not None and following.title == block.title + _PRINTS
            found.append((files, Step(block, following if red else None)))
            files = []
    return found
