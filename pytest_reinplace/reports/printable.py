"""Text from anywhere, made harmless: a name may hold control codes, and be of any length."""

from __future__ import annotations

import unicodedata

MOST_CHARACTERS = 300
# Control codes, marks that turn the direction of writing or hide, parts of pairs, and separators of lines.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: object, most: int = MOST_CHARACTERS) -> str:
    r"""Return one line, of at most ``most`` characters; what is not shown is escaped (``\x1b``)."""
    whole = str(text)
    cut = whole if len(whole) <= most else f"{whole[: most - 1]}…"
    if cut.isprintable():
        return cut
    return "".join(_escaped(c) if unicodedata.category(c) in _HIDDEN else c for c in cut)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
