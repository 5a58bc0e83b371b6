"""Labels that are compared with a list by ``==``, which raises by itself when there is a difference."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from .session.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from .capture.captured import CapturedGraph


def raise_unless(found: Verdict) -> None:
    """Raise a verdict that is no good one as a failure."""
    __tracebackhide__ = True
    if not found.passed:
        raise AssertionError(str(found))


class Listed(abc.ABC):
    """Labels, compared as often as they are listed, in any order.

    Nothing that can be asked of it holds where nothing can be known of the graphs: to iterate, and so
    ``len`` and ``in``, raises then. ``!=``, ``<`` and truth are errors: they would hold for reasons that
    nobody meant.

    Args:
        graphs: returns the graphs that are meant.
        where: the pass and the backend, for the reader.
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # == raises, so no set may look for an equal one

    fixture: ClassVar[str] = ""
    """The name of the fixture."""
    noun: ClassVar[str] = ""
    """What the labels are of, in the plural."""
    one: ClassVar[str] = ""
    """What one label is of."""
    instead_of_count: ClassVar[str] = ""
    """What is done to a label, for who gives a mapping."""

    def __init__(self, graphs: Callable[[], Sequence[CapturedGraph]], where: str) -> None:
        self._graphs = graphs
        self._where = where
        self.consulted: bool = False
        self._called: list[Listed] = []

    @property
    def is_called_only(self) -> bool:
        """Whether a call of it returned labels that nothing was compared with."""
        return any(not found.consulted for found in self._called)

    @property
    def is_used(self) -> bool:
        """Whether it, or what each call of it returned, was compared or looked at."""
        asked = [found.consulted for found in self._called]
        return all(asked) if asked else self.consulted

    def __eq__(self, other: object) -> bool:
        __tracebackhide__ = True
        self.consulted = True
        raise_unless(self._compared(self._wanted(other)))
        return True

    def __lt__(self, other: object) -> bool:
        __tracebackhide__ = True
        raise self._unordered("<", other)

    def __le__(self, other: object) -> bool:
        __tracebackhide__ = True
        raise self._unordered("<=", other)

    def __gt__(self, other: object) -> bool:
        __tracebackhide__ = True
        raise self._unordered(">", other)

    def __ge__(self, other: object) -> bool:
        __tracebackhide__ = True
        raise self._unordered(">=", other)

    def __ne__(self, other: object) -> bool:
        __tracebackhide__ = True
        raise TypeError(
            f"expected {self.noun} to be compared by ==, got !=, which would hold for any other {self.one}"
        )

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        raise TypeError(f"expected {self.fixture} == [...], got {self.fixture} alone: list the labels, or []")

    def __iter__(self) -> Iterator[str]:
        __tracebackhide__ = True
        return iter(self._labels())

    def __len__(self) -> int:
        __tracebackhide__ = True
        return len(self._labels())

    def __repr__(self) -> str:
        return repr(self._found())

    @abc.abstractmethod
    def _found(self) -> list[str]:
        """Return the labels that came."""

    @abc.abstractmethod
    def _known(self) -> Verdict:
        """Judge that something can be known of the graphs."""

    @abc.abstractmethod
    def _compared(self, wanted: list[str]) -> Verdict:
        """Judge that exactly these labels came."""

    def _labels(self) -> list[str]:
        __tracebackhide__ = True
        self.consulted = True
        raise_unless(self._known())
        return self._found()

    def _wanted(self, other: object) -> list[str]:
        """Return a list that is compared with; raises ``TypeError`` for anything else."""
        __tracebackhide__ = True
        if isinstance(other, str | bytes | Mapping) or not isinstance(other, Iterable):
            raise TypeError(
                f"expected a list of labels to compare the {self.noun} with, got {other!r}"
                f"{self._instead(other)}"
            )
        labels = list(other)
        if wrong := [label for label in labels if not isinstance(label, str)]:
            raise TypeError(f"expected labels as strings, got {wrong[0]!r}")
        return labels

    def _unordered(self, sign: str, other: object) -> TypeError:
        """Return the error of an order: a list has none, and a count is asked of ``len``."""
        text = f"expected {self.fixture} == [...], got {self.fixture} {sign} {other!r}"
        return TypeError(f"{text}: write len({self.fixture}) {sign} {other!r}" if _is_count(other) else text)

    def _instead(self, other: object) -> str:
        """Return the end of a sentence: what to write instead of something that is no list."""
        if _is_count(other) and other == 0:
            return f": write {self.fixture} == []"
        if _is_count(other):
            return f": write len({self.fixture}) == {other!r}"
        if isinstance(other, Mapping):
            return f": list each label as often as it is {self.instead_of_count}"
        return f": write {self.fixture} == {[other]!r}" if isinstance(other, str) else ""


def _is_count(other: object) -> bool:
    return isinstance(other, int) and not isinstance(other, bool)
