"""How outcomes are worded: bytes, places and reasons, in the terminal and in failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..passes import Outcome


def bytes_of(count: int) -> str:
    """Return bytes for a person, with the exact number: ``"1.5 KiB (1536 B)"``."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit} ({count} B)"


def plural(count: int, noun: str) -> str:
    """Return ``"1 clone"``, ``"2 clones"``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def clone_lines(outcome: Outcome) -> list[str]:
    """Return why a candidate was cloned, label and bytes first; two lines at most."""
    return outcome.lines()
