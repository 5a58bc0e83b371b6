"""What ``assert_copies`` is: a verdict on the copies that Inductor's lowering adds, raised as a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .call import arguments, call
from .copies.allowed import copies_of
from .listed import Listed
from .session import eager, verdict
from .session.item_capture import origin
from .session.verdict import Verdict

if TYPE_CHECKING:
    from .capture.capture import Capture


class Copies(Listed):
    """The copies that lowering adds, by their labels, compared by ``==``, which raises by itself.

    A copy that the program means is none of them. Nothing holds where no graph was lowered.
    """

    fixture = "assert_copies"
    noun = "copies"
    one = "copy"
    instead_of_count = "copied"

    def __contains__(self, label: object) -> bool:
        """Return whether a copy has this label, whole."""
        __tracebackhide__ = True
        if not isinstance(label, str):
            raise TypeError(f"expected a label as a string, got {label!r}")
        return label in self._labels()

    def _found(self) -> list[str]:
        return [copy.label for copy in copies_of(self._graphs())]

    def _known(self) -> Verdict:
        return verdict.copies_known(self._graphs(), self._where)

    def _compared(self, wanted: list[str]) -> Verdict:
        return verdict.copies_are(self._graphs(), wanted, self._where)


class AssertCopies(Copies):
    """The copies in all that the test compiled so far; called with a callable, only in what that compiles.

    Args:
        capture: the running capture of the test.
    """

    def __init__(self, capture: Capture) -> None:
        super().__init__(lambda: capture.since(0), origin(capture))
        self._capture = capture

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Copies:
        """Compile ``fn`` and call it; return the copies that lowering adds, to be compared with ``==``."""
        __tracebackhide__ = True
        arguments.check(fn, args, kwargs)
        start = len(self._capture.graphs)
        fast = call.compiled(fn)
        eager.beside(self._capture, fn, args, kwargs, lambda: fast(*args, **kwargs))
        graphs = self._capture.since(start)
        found = Copies(lambda: graphs, self._where)
        self._called.append(found)
        return found
