"""A list in square brackets, rewritten with its comments: a list of Python, or one of YAML in flow style."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Sequence

MOST_COLUMNS = 110


@dataclasses.dataclass(frozen=True, slots=True)
class Element:
    """One label of a list.

    Args:
        label: the label.
        begin: where its text begins in the file.
        end: where it ends.
    """

    label: str
    begin: int
    end: int


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """A label as it stands in the file.

    Args:
        text: the label, quoted as it has to be.
        above: the comments on lines of their own above it.
        beside: the comment behind it.
    """

    text: str
    above: tuple[str, ...] = ()
    beside: str = ""


def rewritten(
    text: str,
    begin: int,
    end: int,
    elements: Sequence[Element],
    came: Iterable[str],
    quoted: Callable[[str], str],
    indents: tuple[int, int],
) -> str:
    """Return a file with other labels in one list.

    The list is on one line where that fits and it holds no comment. A label that stays keeps its comments;
    those of one that goes are gone with it.

    Args:
        text: the file.
        begin: where the opening bracket is.
        end: behind the closing bracket.
        elements: the labels that the list holds.
        came: the labels that it will hold.
        quoted: returns a label as the language writes it.
        indents: columns of the labels and of the closing bracket, from where the line of the list begins.
    """
    beside, stock, below = _read(text, begin, end, elements, quoted)
    items = [stock[label].popleft() if stock.get(label) else Written(quoted(label)) for label in came]
    start = text.rfind("\n", 0, begin) + 1
    line_end = text.find("\n", end)
    rest = text[end : line_end if line_end >= 0 else len(text)].rstrip("\r")
    short = f"[{', '.join(item.text for item in items)}]"
    is_bare = not beside and not below and not any(item.above or item.beside for item in items)
    if is_bare and (len(text[start:begin] + short + rest) <= MOST_COLUMNS or not items):
        return text[:begin] + short + text[end:]
    line = text[start:begin]
    base = line[: len(line) - len(line.lstrip())]
    inner, closing = (base + " " * columns for columns in indents)
    lines = ["[" + _behind(beside)]
    for item in items:
        lines += [inner + comment for comment in item.above]
        lines.append(f"{inner}{item.text},{_behind(item.beside)}")
    lines += [inner + comment for comment in below]
    return text[:begin] + newline(text).join([*lines, f"{closing}]"]) + text[end:]


def newline(text: str) -> str:
    """Return how the lines of a file end."""
    return "\r\n" if "\r\n" in text else "\n"


def _behind(comment: str) -> str:
    return f"  {comment}" if comment else ""


def _read(
    text: str, begin: int, end: int, elements: Sequence[Element], quoted: Callable[[str], str]
) -> tuple[str, dict[str, collections.deque[Written]], tuple[str, ...]]:
    """Return the comment beside the opening bracket, the labels in order, and the comments below the last."""
    stock: dict[str, collections.deque[Written]] = collections.defaultdict(collections.deque)
    ends = [*(element.begin for element in elements), end]
    beside, above = _comments(text[begin : ends[0]])
    for element, following in zip(elements, ends[1:], strict=True):
        behind, next_above = _comments(text[element.end : following])
        written = text[element.begin : element.end]
        if "\n" in written:
            written = quoted(element.label)
        stock[element.label].append(Written(written, above, behind))
        above = next_above
    return beside, stock, above


def _comments(gap: str) -> tuple[str, tuple[str, ...]]:
    """Return the comment at the end of the first line, and those below: between labels ``#`` begins one."""
    first, *rest = (line[line.find("#") :].rstrip() if "#" in line else "" for line in gap.split("\n"))
    return first, tuple(comment for comment in rest if comment)
