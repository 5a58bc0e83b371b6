"""Text that fits a terminal: names shortened in the middle, sentences broken between words, aligned cells."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

# What takes the place of what is left out, and says how often; one column each, as what ASCII has for them.
ELLIPSIS, TIMES = "…", "\N{MULTIPLICATION SIGN}"
ASCII = str.maketrans({ELLIPSIS: "*", TIMES: "x"})


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: a wide character takes two."""
    if text.isascii():
        return len(text)
    wide = (0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
    return sum(wide)


def shortened(text: str, most: int) -> str:
    """Return a name in so many columns: inner folders go first, then what is before ``::``, then letters.

    Args:
        text: a path, a path with a line, the id of a test, a label.
        most: columns that it may take, at least three.
    """
    if columns(text) <= most:
        return text
    path, colons, name = text.partition("::")
    first, *rest = path.split("/")
    paths = ["/".join((first, ELLIPSIS, *rest[start:])) for start in range(1, len(rest))]
    paths += [f"{ELLIPSIS}/{rest[-1]}"] if rest else []
    paths += [ELLIPSIS] if colons else []
    fitting = (found for found in (f"{short}{colons}{name}" for short in paths) if columns(found) <= most)
    return next(fitting, "") or _cut(name or [first, *rest][-1], most)


def begun(text: str, most: int) -> str:
    """Return the beginning of a sentence, in so many columns."""
    return text if columns(text) <= most else _first(text, most - 1).rstrip() + ELLIPSIS


def wrapped(text: str, width: int, indent: str = "", hang: str = "", whole: bool = False) -> list[str]:
    """Return a sentence in lines, broken between words only.

    Args:
        text: the sentence.
        width: columns of a line.
        indent: what the first line begins with.
        hang: what the others begin with.
        whole: whether a word that is longer than a line is kept; otherwise it is shortened.
    """
    lines: list[str] = []
    for word in text.split():
        shown = word if whole else shortened(word, width - max(len(indent), len(hang)))
        if lines and columns(lines[-1]) + 1 + columns(shown) <= width:
            lines[-1] += f" {shown}"
        else:
            lines.append((hang if lines else indent) + shown)
    return lines


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> Iterator[list[str]]:
    """Yield the rows of a table with cells as wide as their column.

    Args:
        rows: its rows, all of one length.
        left: the columns that begin at the left; the others, figures, end at the right.
    """
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        gaps = [" " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)]
        yield [cell + gaps[i] if i in left else gaps[i] + cell for i, cell in enumerate(row)]


def _cut(text: str, most: int) -> str:
    # The end tells more: of a path the line, of a label the argument, of a test its parameters.
    end = most * 2 // 3
    return _first(text, most - 1 - end) + ELLIPSIS + _first(text[::-1], end)[::-1]


def _first(text: str, most: int) -> str:
    taken = 0
    for i, character in enumerate(text):
        taken += columns(character)
        if taken > most:
            return text[:i]
    return text
