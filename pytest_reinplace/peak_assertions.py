"""What ``assert_peak`` is: the peak memory of one call, compared with bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from .base.amount import in_bytes
from .base.wording import bytes_of
from .call import arguments
from .lowered import compiled, told
from .session import eager
from .session.item_capture import origin

if TYPE_CHECKING:
    from .capture.capture import Capture
    from .lowered.memory import Memory


class Peak:
    """The most bytes that were live during a call, above the level before it.

    Compared by ``<=``, ``<`` and ``==`` with a number of bytes or a text like ``"2MiB"``. A comparison that
    does not hold raises by itself, and says what was alive. All others are errors: nobody wants a larger
    peak.

    Args:
        memory: the memory of the call.
        where: the pass and the backend, for the reader.
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # == raises, so no set may look for an equal one

    def __init__(self, memory: Memory, where: str) -> None:
        self.memory: Memory = memory
        self.nbytes: int = memory.measured
        self._where = where
        self.consulted: bool = False

    def __le__(self, other: object) -> bool:
        __tracebackhide__ = True
        return self._held(other, "at most", lambda limit: self.nbytes <= limit)

    def __lt__(self, other: object) -> bool:
        __tracebackhide__ = True
        return self._held(other, "less than", lambda limit: self.nbytes < limit)

    def __eq__(self, other: object) -> bool:
        __tracebackhide__ = True
        return self._held(other, "exactly", lambda limit: self.nbytes == limit)

    def __ne__(self, other: object) -> bool:
        __tracebackhide__ = True
        raise _unmeant("!=", other)

    def __gt__(self, other: object) -> bool:
        __tracebackhide__ = True
        raise _unmeant(">", other)

    def __ge__(self, other: object) -> bool:
        __tracebackhide__ = True
        raise _unmeant(">=", other)

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        raise TypeError('expected assert_peak(fn, x) <= "2MiB", got assert_peak(fn, x) alone')

    def __repr__(self) -> str:
        return f"a peak of {bytes_of(self.nbytes)}"

    def _held(self, other: object, how: str, holds: Callable[[int], bool]) -> bool:
        __tracebackhide__ = True
        try:
            limit = in_bytes(other)
        except ValueError as error:
            raise TypeError(f"assert_peak: {error}") from None
        self.consulted = True
        if holds(limit):
            return True
        lines = [
            f"the peak is {bytes_of(self.nbytes)}, expected {how} {bytes_of(limit)} ({self._where})",
            told.equation(self.memory),
            *told.lower_bound(self.memory),
            *told.at_peak(self.memory),
        ]
        raise AssertionError("\n".join(lines))


def _unmeant(sign: str, other: object) -> TypeError:
    """Return the error of a comparison that asks for a larger peak, or for any other one."""
    return TypeError(f"expected assert_peak(fn, x) <= ..., < ... or == ..., got {sign} {other!r}")


class AssertPeak:
    """Measures calls, to be compared with bytes.

    Args:
        capture: the running capture of the test.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._called: list[Peak] = []

    @property
    def is_called_only(self) -> bool:
        """Whether a call of it returned a peak that nothing was compared with."""
        return any(not peak.consulted for peak in self._called)

    @property
    def is_used(self) -> bool:
        """Whether it was called, and each peak was compared."""
        return bool(self._called) and not self.is_called_only

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Peak:
        """Compile ``fn``, call it three times with the same tensors, and return its peak.

        The first call compiles, the second is measured, the third is followed line by line; a fourth one is
        made where programs ask for numbers. All tensors that can be reached from ``fn`` and the arguments,
        and the random generators, are put back before each. A
        ``fn`` that is compiled already is called as it is. Results that the call returns count, arguments do
        not.

        Raises:
            TypeError: ``fn`` does not take these arguments.
            AssertionError: where the marker has a ``tolerance``: the call differs from eager.
        """
        __tracebackhide__ = True
        arguments.check(fn, args, kwargs)
        found: list[Memory] = []

        def measured() -> Any:
            result, memory = compiled.of(fn, args, kwargs, self._capture.progress)
            self._capture.peaks.append(memory.measured)
            self._capture.memories.append(memory)
            found.append(memory)
            return result

        eager.beside(self._capture, fn, args, kwargs, measured)
        self._called.append(Peak(found[-1], origin(self._capture)))
        return self._called[-1]
