"""A limit on how much a figure of a test may grow: ``clones:0``, ``peak_bytes:1%``."""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction

from ..base.amount import UNITS
from ..base.nearest import nearest
from ..base.visible import visible

NEW_CLONES, REMOVED_TESTS = OF_TWO_REPORTS = "new_clones", "removed_tests"  # none has these by itself
MATCHES = "matches"  # with the name of a rule behind it
OF_LEDGERS = ("pass_copies", "pass_seconds")
OF_LOWERING = ("copies", "copy_bytes")
OF_MEMORY = ("static_peak",)
METRICS = (
    *("clones", NEW_CLONES, "clone_bytes", "peak_bytes", "runtime", REMOVED_TESTS),
    *OF_LOWERING,
    *OF_MEMORY,
    *OF_LEDGERS,
)

_AMOUNT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)(%|[A-Za-z]+)?", re.ASCII)
# Where that is not both a plain number and a percentage.
_FITTING: dict[str, tuple[str | None, ...]] = {NEW_CLONES: (None,), REMOVED_TESTS: (None,), MATCHES: (None,)}
_FITTING |= {"runtime": ("%",), "pass_seconds": ("%",)}
_FORMS = {
    "clones": "a whole number (clones:0) or a percentage (clones:5%)",
    "new_clones": "a whole number (new_clones:0)",
    "clone_bytes": "bytes (clone_bytes:0, clone_bytes:4MiB) or a percentage (clone_bytes:1%)",
    "peak_bytes": "bytes (peak_bytes:0, peak_bytes:4MiB) or a percentage (peak_bytes:1%)",
    "runtime": "a percentage (runtime:5%)",
    "removed_tests": "a whole number (removed_tests:0)",
    "copies": "a whole number (copies:0) or a percentage (copies:5%)",
    "copy_bytes": "bytes (copy_bytes:0, copy_bytes:4MiB) or a percentage (copy_bytes:1%)",
    "static_peak": "bytes (static_peak:0, static_peak:4MiB) or a percentage (static_peak:1%)",
    "pass_copies": "a whole number (pass_copies:0) or a percentage (pass_copies:5%)",
    "pass_seconds": "a percentage (pass_seconds:20%)",
    MATCHES: "a rule and a whole number (matches:RULE:0)",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """How much larger a figure may be than it was, test by test; of ``removed_tests``, how many.

    Of ``matches`` it is how much smaller the figure may be: a rule that fires no more is what is to be found.

    Args:
        metric: one of ``METRICS``, or ``matches``.
        text: as it was given, ``"peak_bytes:1%"``.
        amount: clones, bytes, or hundredths of the old figure.
        is_percent: whether it is hundredths.
        required: whether a run that has not measured the figure at all is over the limit.
        rule: of ``matches`` the name of the rule or pass, in which ``*`` is any text.
    """

    metric: str
    text: str
    amount: Fraction
    is_percent: bool = False
    required: bool = True
    rule: str = ""

    @property
    def needs_report(self) -> bool:
        """Whether only an earlier report can be held against it."""
        others = *OF_TWO_REPORTS, *OF_LOWERING, *OF_MEMORY
        return self.metric in others or self.needs_ledger

    @property
    def needs_memory(self) -> bool:
        """Whether it is about what programs of measured calls hold."""
        return self.metric in OF_MEMORY

    @property
    def needs_ledger(self) -> bool:
        """Whether it is about what passes and rules did to the graphs."""
        return self.metric in (*OF_LEDGERS, MATCHES)

    def is_exceeded(self, old: float, new: float) -> bool:
        """Return whether a figure grew by more than is allowed; exact, no rounding."""
        allowed = Fraction(old) * self.amount / 100 if self.is_percent else self.amount
        return Fraction(new) - Fraction(old) > allowed


def limit(text: str) -> Limit:
    """Return the limit that ``METRIC:LIMIT`` means; raises ``ValueError`` saying what was expected."""
    metric, colon, amount = text.strip().partition(":")
    if not colon:
        raise ValueError(f"expected METRIC:LIMIT, as in clone_bytes:0, got {_quoted(text)}")
    if metric not in (*METRICS, MATCHES):
        near = nearest(visible(metric, 60), (*METRICS, MATCHES))
        raise ValueError(f"no metric is called {_quoted(metric)}{near}")
    rule = ""
    if metric == MATCHES:
        rule, _, amount = amount.rpartition(":")  # the name of a pass may have a colon of its own
    found = _AMOUNT.fullmatch(amount)
    number, unit = found.groups() if found else ("", None)
    is_bytes = metric.endswith("_bytes") or metric in OF_MEMORY
    fits = unit in _FITTING.get(metric, (None, "%")) or (is_bytes and unit in UNITS)
    whole = unit is not None or "." not in number
    if not found or not fits or not whole or (metric == MATCHES and not rule):
        raise ValueError(f"expected {metric} to be limited by {_FORMS[metric]}, got {_quoted(text)}")
    size = Fraction(number) * (UNITS.get(unit, 1) if unit else 1)
    return Limit(metric, text.strip(), size, unit == "%", rule=rule)


def _quoted(text: str) -> str:
    return repr(visible(text, 60))


def exact() -> tuple[Limit, ...]:
    """Return what holds where nothing was said: nothing may grow, peak memory only where it was measured.

    Nor may a clone hide behind another that is gone.
    """
    return (
        limit("clones:0"),
        limit("new_clones:0"),
        limit("clone_bytes:0"),
        dataclasses.replace(limit("peak_bytes:0"), required=False),
    )
