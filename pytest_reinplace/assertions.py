"""What ``assert_reinplaced`` and ``assert_clones`` are: verdicts on a capture, raised as failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .call import call
from .session import eager, verdict
from .session.item_capture import origin

if TYPE_CHECKING:
    from .capture.capture import Capture
    from .capture.captured import CapturedGraph
    from .session.verdict import Verdict


def _raise_unless(found: Verdict) -> None:
    __tracebackhide__ = True
    if not found.passed:
        raise AssertionError(str(found))


class AssertReinplaced:
    """Asserts that candidates are in place.

    Args:
        capture: the running capture of the test.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Assert that candidates are in place; there are three forms.

        ``assert_reinplaced(fn, *args, **kwargs)`` compiles ``fn`` as one graph, calls it, requires every
        candidate of what was compiled to be in place, and returns the result. A ``fn`` that is compiled
        already is called as it is. ``assert_reinplaced("mylib::update.cache", "out")`` requires the
        candidates of these labels, or bare argument names, to be in place wherever the test compiled
        them. ``assert_reinplaced()`` requires it of all that the test compiled.

        Raises:
            AssertionError: a candidate is cloned, a name is unknown, nothing was compiled, or nothing in it
                could be in place; or the call differs from eager, where the marker has a ``tolerance``.
        """
        __tracebackhide__ = True
        if args and callable(args[0]):
            return self._called(*args, **kwargs)
        if kwargs or not all(isinstance(arg, str) for arg in args):
            raise TypeError(
                f"expected a callable and its arguments, or labels as strings, got {args!r} and {kwargs!r}"
            )
        graphs, where = self._capture.graphs, origin(self._capture)
        _raise_unless(
            verdict.named_in_place(graphs, args, where) if args else verdict.all_in_place(graphs, where)
        )
        return None

    def _called(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        start = len(self._capture.graphs)
        fast = call.compiled(fn, fullgraph=True)
        result = eager.beside(self._capture, fn, args, kwargs, lambda: fast(*args, **kwargs))
        _raise_unless(verdict.all_in_place(self._capture.graphs[start:], origin(self._capture)))
        return result


class Clones:
    """The clone list, compared by ``==``, which raises by itself when there is a difference.

    Labels are compared as often as they are listed, in any order. ``!=`` never raises.

    Args:
        graphs: returns the graphs that are meant.
        where: the pass and the backend, for the reader.
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # == raises, so no set may look for an equal one

    def __init__(self, graphs: Callable[[], Sequence[CapturedGraph]], where: str) -> None:
        self._graphs = graphs
        self._where = where

    def __eq__(self, other: object) -> bool:
        __tracebackhide__ = True
        _raise_unless(self._compared(other))
        return True

    def __ne__(self, other: object) -> bool:
        return not self._compared(other).passed

    def __iter__(self) -> Iterator[str]:
        return (o.label for o in verdict.outcomes_of(self._graphs()) if not o.reinplaced)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(list(self))

    def _compared(self, other: object) -> Verdict:
        if isinstance(other, str | bytes) or not isinstance(other, Iterable):
            raise TypeError(f"expected a list of labels to compare the clones with, got {other!r}")
        labels = list(other)
        if wrong := [label for label in labels if not isinstance(label, str)]:
            raise TypeError(f"expected labels as strings, got {wrong[0]!r}")
        return verdict.clones_are(self._graphs(), labels, self._where)


class AssertClones(Clones):
    """The clones of all that the test compiled so far; called with a callable, only of what that compiles.

    Args:
        capture: the running capture of the test.
    """

    def __init__(self, capture: Capture) -> None:
        super().__init__(lambda: capture.graphs, origin(capture))
        self._capture = capture

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Clones:
        """Compile ``fn`` and call it; return its clones, to be compared with ``==``."""
        if not callable(fn):
            raise TypeError(f"expected a callable and its arguments, got {fn!r}")
        start = len(self._capture.graphs)
        fast = call.compiled(fn)
        eager.beside(self._capture, fn, args, kwargs, lambda: fast(*args, **kwargs))
        graphs = self._capture.graphs[start:]
        return Clones(lambda: graphs, self._where)
