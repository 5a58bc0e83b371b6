"""Each corpus entry that holds more than eager says why, on the page of coverage and nowhere for nothing."""

from __future__ import annotations

import pytest

from pytest_reinplace.lowered.memory import Memory

from ..house.checkout import ROOT
from . import above_eager, coverage
from .coverage import Row, page

TEXT = (ROOT / "docs" / "memory-coverage.md").read_text("utf-8")


def cells(text: str, heads: str) -> dict[str, dict[str, str]]:
    """Return the rows of the table that has these heads, by the first cell."""
    _, _, table = text.partition(f"\n{heads}\n")
    names = [name.strip() for name in heads.strip("|").split("|")]
    found = {}
    for line in table.splitlines()[1:]:
        if not line.startswith("|"):
            break
        row = dict(zip(names, (cell.strip() for cell in line.strip("|").split("|")), strict=True))
        found[row["entry"]] = row
    return found


KNOWN = cells(TEXT, next(line for line in TEXT.splitlines() if line.startswith("| entry | programs |")))
WHY = cells(TEXT, "| entry | measured | eager | why |")


def test_the_page_lists_what_holds_more_than_eager() -> None:
    above = {name for name, row in KNOWN.items() if int(row["measured"]) > int(row["eager"])}
    assert above == WHY.keys()
    assert all(WHY[name][key] == KNOWN[name][key] for name in WHY for key in ("measured", "eager"))
    told = f"{len(KNOWN) - len(above)} of {len(KNOWN)} entries hold at most what eager holds."
    assert told in TEXT


def test_each_of_them_has_a_reason_and_no_other_entry_has() -> None:
    assert {name: row["why"] for name, row in WHY.items()} == above_eager.reasons()


def test_each_reason_begins_with_a_cause_and_each_cause_is_one() -> None:
    named = {name: reason.partition(":")[0] for name, reason in above_eager.reasons().items()}
    assert set(named.values()) == above_eager.causes().keys()
    assert all(reason.partition(": ")[2] for reason in above_eager.reasons().values())
    assert all(f"* *{name}*: {text}" in TEXT for name, text in above_eager.causes().items())


def test_a_page_says_the_reason_of_an_entry_above_eager_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(above_eager, "causes", lambda: {"order": "it is so"})
    monkeypatch.setattr(above_eager, "reasons", lambda: {"more": "order: that one", "less": "order: no"})
    monkeypatch.setattr(coverage, "DEVICE", "cpu")
    rows = [Row("less", Memory(8), eager=8), Row("more", Memory(9), eager=8), Row("none", problem="why not")]
    text = page(rows)
    assert "1 of 2 entries hold at most what eager holds." in text
    assert "\n* *order*: it is so\n" in text and "\n* none: why not\n" in text
    assert cells(text, "| entry | measured | eager | why |") == {
        "more": {"entry": "more", "measured": "9", "eager": "8", "why": "order: that one"}
    }
