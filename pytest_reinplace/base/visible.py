"""Names from reports, made harmless for a terminal: they may hold control codes and line breaks."""

from __future__ import annotations

import unicodedata

# Control codes, marks that turn the direction of writing or hide, halves of pairs, separators of lines.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
BRIEF = 300


def visible(text: object, most: int = 0) -> str:
    r"""Return one line in which nothing hides: what is not shown is escaped (``\x1b``).

    Args:
        text: anything; its ``str`` is taken.
        most: characters to keep; 0 for all of them.
    """
    whole = str(text)
    if most and len(whole) > most:
        whole = f"{whole[: most - 1]}…"
    if whole.isprintable():
        return whole
    return "".join(_escaped(c) if unicodedata.category(c) in _HIDDEN else c for c in whole)


def brief(text: object) -> str:
    """Return one line of at most 300 characters in which nothing hides."""
    return visible(text, BRIEF)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
