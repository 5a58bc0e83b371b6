"""Figures of what the measured calls of a test held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Calls = Iterable[Mapping[str, Any]]


def figures_of(calls: Calls | None) -> dict[str, int]:
    """Return the highest static peak of the programs that ran; nothing where one of them is not known."""
    peaks = [one["static_peak"] for call in calls or () for one in call["programs"]]
    return {"static_peak": max(peaks)} if peaks and None not in peaks else {}
