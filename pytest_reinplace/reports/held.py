"""What measured calls held, as a report tells it: figures, and in words where they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ..base.wording import bytes_of, plural
from ..compare.figure import shown

# The figures of a call, in the order of ``Call.figures``; and shorter, for a terminal.
FIGURES = ("measured peak", "static peak", "lower bound", "peak / bound")
SHORT = ("measured", "static", "bound", "peak/bound")
NOTE = "where figures differ"
_MOST_PROBLEMS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One measured call of a test.

    Args:
        test: the id of the test.
        number: which of its measured calls it is, from 1.
        of: how many measured calls the test has.
        data: as the document has it.
    """

    test: str
    number: int
    of: int
    data: Mapping[str, Any]

    @property
    def which(self) -> str:
        """Which call of its test it is; empty where that has one only."""
        return f"call {self.number}" if self.of > 1 else ""

    @property
    def measured(self) -> int:
        """The measured peak."""
        return int(self.data["measured_peak"])

    @property
    def figures(self) -> tuple[float | None, ...]:
        """What ``FIGURES`` name; ``None`` where that is not known."""
        most = self._most
        bound = self.data["lower_bound"] if most is not None else None
        over = self.measured / bound if bound else None
        return self.measured, most["static_peak"] if most is not None else None, bound, over

    def cells(self, exact: bool = True) -> list[str]:
        """Return the figures as text, a dash for what is not known.

        Args:
            exact: whether bytes are told to the byte.
        """
        *sizes, over = self.figures
        told = (
            "-" if size is None else bytes_of(int(size)) if exact else shown("static_peak", size)
            for size in sizes
        )
        return [*told, "-" if over is None else f"{over:.2f}"]

    @property
    def is_odd(self) -> bool:
        """Whether something of it is not known, or not explained."""
        return not self._known or bool(self._problems) or bool(self.data.get("unexplained"))

    @property
    def note(self) -> str:
        """What is not known, and how the measured peak is made up where it is not the static one."""
        return "; ".join([*self._unknown(), *self._sum()])

    @property
    def _known(self) -> list[Mapping[str, Any]]:
        return [one for one in self.data["programs"] if one["static_peak"] is not None]

    @property
    def _problems(self) -> list[Mapping[str, Any]]:
        return [one for one in self.data["programs"] if one["problem"]]

    @property
    def _most(self) -> Mapping[str, Any] | None:
        """The program that holds most; ``None`` where none is known."""
        return max(self._known, key=_peak, default=None)

    def _unknown(self) -> Iterator[str]:
        if not self.data["programs"]:
            yield "no program of Inductor ran"
        problems = self._problems
        yield from (f"{one['graph']} is not known: {one['problem']}" for one in problems[:_MOST_PROBLEMS])
        if problems[_MOST_PROBLEMS:]:
            yield f"{plural(len(problems) - _MOST_PROBLEMS, 'more program')} not known"

    def _sum(self) -> Iterator[str]:
        most, unexplained = self._most, self.data.get("unexplained")
        if most is None or (self.measured == most["static_peak"] and not unexplained):
            return
        if unexplained is not None and self.data["outside"] > _peak(most):
            parts = [f"{self.data['outside']} B held while no program ran"]
        else:
            parts = [f"{most['static_peak']} B that {most['graph']} holds"]
            parts += [f"{most['before']} B held before it"] if most["before"] else []
            calls = _peak(most) - most["before"] - most["static_peak"]
            parts += [f"{calls} B that calls in it add"] if calls else []
        # A report that does not say what is unexplained does not say what calls add, either.
        what = "besides" if unexplained is None else "unexplained"
        rest = self.measured - _peak(most) if unexplained is None else int(unexplained)
        parts += [f"{rest} B {what}"] if rest > 0 else []
        less = f", less {-rest} B that were not seen" if rest < 0 else ""
        yield f"measured peak = {' + '.join(parts)}{less}"


def calls_in(report: Mapping[str, Any]) -> list[Call]:
    """Return the measured calls of a document, those of the highest measured peak first."""
    found = [
        Call(test, number, len(calls), call)
        for test, data in sorted(report["tests"].items())
        for calls in [data.get("memory") or ()]
        for number, call in enumerate(calls, 1)
    ]
    return sorted(found, key=lambda call: -call.measured)


def title(calls: list[Call]) -> str:
    """Return the heading: how many calls were measured."""
    tests = plural(len({call.test for call in calls}), "test")
    return f"memory: {plural(len(calls), 'measured call')} in {tests}"


def _peak(program: Mapping[str, Any]) -> int:
    """Return the most bytes that were held while a program ran, as far as that is known."""
    peak = program.get("peak")
    return int(program["before"] + program["static_peak"] if peak is None else peak)
