"""Each corpus entry that holds more than eager says why, on the pages of coverage and nowhere for nothing."""

from __future__ import annotations

import pytest
import torch

from pytest_reinplace.lowered.memory import Memory

from ..house.checkout import ROOT
from . import above_eager, coverage
from .coverage import Row, page

TEXTS = {
    device: (ROOT / "docs" / name).read_text("utf-8")
    for device, name in (("cpu", "memory-coverage.md"), ("cuda", "memory-coverage-cuda.md"))
}
_HEADS = "| entry | measured | peak | eager | why |"


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


KNOWN = {
    device: cells(text, next(line for line in text.splitlines() if line.startswith("| entry | programs |")))
    for device, text in TEXTS.items()
}
WHY = {device: cells(text, _HEADS) for device, text in TEXTS.items()}
on_each_device = pytest.mark.parametrize("device", TEXTS)


@on_each_device
def test_the_page_lists_what_holds_more_than_eager(device: str) -> None:
    known, why = KNOWN[device], WHY[device]
    above = {name for name, row in known.items() if int(row["measured"]) > int(row["eager"])}
    assert above == why.keys()
    assert all(why[name][key] == known[name][key] for name in why for key in ("measured", "eager"))
    told = f"{len(known) - len(above)} of {len(known)} entries hold at most what eager holds, "
    by_peak = sum(int(row["peak"]) <= int(row["eager"]) for row in why.values())
    told += f'{len(known) - len(above) + by_peak} with `inductor_options(policy="peak")`.'
    assert told in TEXTS[device]


@on_each_device
def test_each_of_them_has_a_reason_and_no_other_entry_has(device: str) -> None:
    assert {name: row["why"] for name, row in WHY[device].items()} == above_eager.reasons(device)


@on_each_device
def test_each_reason_begins_with_a_cause_and_each_cause_is_one(device: str) -> None:
    causes, reasons = above_eager.causes(device), above_eager.reasons(device)
    assert {reason.partition(":")[0] for reason in reasons.values()} == causes.keys()
    assert all(reason.partition(": ")[2] for reason in reasons.values())
    assert all(f"* *{name}*: {text}" in TEXTS[device] for name, text in causes.items())


@on_each_device
def test_a_page_says_the_reason_of_an_entry_above_eager_alone(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    causes = {device: {"order": "it is so"}}
    reasons = {device: {"more": "order: that one", "less": "order: no"}}
    monkeypatch.setattr(above_eager, "causes", causes.__getitem__)
    monkeypatch.setattr(above_eager, "reasons", reasons.__getitem__)
    monkeypatch.setattr(coverage, "DEVICE", device)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    rows = [
        Row("less", Memory(8), eager=8),
        Row("more", Memory(9), eager=8, by_peak=7),
        Row("none", problem="why not"),
    ]
    text = page(rows)
    assert "1 of 2 entries hold at most what eager holds, 2 with" in text
    assert "\n* *order*: it is so\n" in text and "\n* none: why not\n" in text
    assert cells(text, _HEADS) == {
        "more": {"entry": "more", "measured": "9", "peak": "7", "eager": "8", "why": "order: that one"}
    }
