"""How a hint says what to do, by who asks: a test, a corpus entry, the command, or production."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .reason import KEEP_ORDER, LIST, MARKER, OUR_PASS

Asker = Literal["test", "marked test", "entry", "command", "production"]

_OURS = MARKER.format("exact")
_INSTEAD: Mapping[Asker, Mapping[str, str]] = {
    "entry": {OUR_PASS: OUR_PASS.replace(_OURS, "--reinplace-pass=exact")},
    "command": {OUR_PASS: OUR_PASS.replace(_OURS, "--pass exact")},
    "production": {KEEP_ORDER: KEEP_ORDER.replace("{", "inductor_options() | {")},
}


def worded(hint: str, asker: Asker, pass_name: str = "exact") -> str:
    """Return a hint that says what helps whoever asks; any other hint stays as it is.

    Args:
        hint: as the pass and the judge give it, which is for a test.
        asker: who asks; a ``"marked test"`` names the pass itself, so that it always runs with it.
        pass_name: the pass under test. Clones are those of one pass: a list of them belongs to it.
    """
    text, found, labels = hint.partition(LIST)
    if found:
        text += _meant(asker, pass_name, f"{LIST}{labels}")
    for of_a_test, other in _INSTEAD.get(asker, {}).items():
        text = text.replace(of_a_test, other)
    return text


def _meant(asker: Asker, pass_name: str, listing: str) -> str:
    """Return what to do about a copy that is meant."""
    if asker == "production":
        return "leave it out of require"
    if asker == "entry":
        return f"list it in the entry, at clones.{pass_name}"
    if asker == "marked test" or pass_name == "inductor":
        return listing
    return f"mark the test {MARKER.format(pass_name)} and {listing}"
