"""Cells of Markdown tables, whose text comes from anywhere."""

from __future__ import annotations

from collections.abc import Iterable

from .visible import BRIEF, visible

# Means nothing inside a line. A dot does, it makes links of www.something; so does a colon, it makes emoji.
_PLAIN = frozenset(" ,;/'-=+%()")


def table_row(cells: Iterable[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def in_code(name: object) -> str:
    """Return a name in the type of code. A span of backticks cannot hold every name; an element can."""
    return f"<code>{unmarked(name)}</code>"


def unmarked(value: object, most: int = BRIEF) -> str:
    """Return text that is shown as it is: whatever might mean something to Markdown or HTML is an entity.

    Args:
        value: anything; its ``str`` is taken.
        most: characters to keep.
    """
    text = visible(value, most)
    return "".join(c if c.isalnum() or c in _PLAIN or ord(c) > 127 else f"&#{ord(c)};" for c in text)
