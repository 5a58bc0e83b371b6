"""What ``assert_reinplaced`` and ``assert_clones`` are: verdicts on a capture, raised as failures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .base.wording import explained, plural
from .call import arguments, call, failure
from .listed import Listed, raise_unless
from .session import eager, verdict
from .session.item_capture import origin
from .session.verdict import Verdict

if TYPE_CHECKING:
    from .capture.capture import Capture
    from .capture.captured import CapturedGraph
    from .passes import Outcome

Accepts = Callable[[list[str], list[str]], bool]


class AssertReinplaced:
    """Asserts that candidates are in place.

    Args:
        capture: the running capture of the test.

    ``is_used`` says whether it was called: a test that never does it asserts nothing.
    """

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.is_used: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Assert that candidates are in place; there are three forms.

        ``assert_reinplaced(fn, *args, **kwargs)`` compiles ``fn`` as one graph, calls it, requires every
        candidate of what was compiled to be in place, and returns the result. A ``fn`` that is compiled
        already is called as it is. ``assert_reinplaced("mylib::update.cache", "out")`` requires the
        candidates of these labels, or bare argument names, to be in place wherever the test compiled
        them; an operator alone means all its arguments, and ``*`` stands for any text (``"mylib::*"``).
        ``assert_reinplaced()`` requires it of all that the test compiled.

        Raises:
            TypeError: ``fn`` does not take these arguments.
            AssertionError: a candidate is cloned, or was written in place although our analysis forbids it;
                a name is unknown, nothing was compiled, or nothing in it could be in place; or the call
                differs from eager, where the marker has a ``tolerance``.
        """
        __tracebackhide__ = True
        self.is_used = True
        if args and callable(args[0]):
            return self._called(*args, **kwargs)
        if kwargs or not all(isinstance(arg, str) for arg in args):
            got = f"{args!r} and {kwargs!r}" if kwargs else repr(args)
            raise TypeError(
                f"expected a callable and its arguments, or labels as strings, got {got}: to check a call "
                "of step(x), write assert_reinplaced(step, x), which calls it"
            )
        graphs, where = self._capture.since(0), origin(self._capture)
        raise_unless(
            verdict.named_in_place(graphs, args, where) if args else verdict.all_in_place(graphs, where)
        )
        return None

    def _called(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        arguments.check(fn, args, kwargs)
        start = len(self._capture.graphs)
        fast = call.compiled(fn, fullgraph=True)
        try:
            result = eager.beside(self._capture, fn, args, kwargs, lambda: fast(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  (told, whatever it is; ``from None`` hides torch's frames)
            raise failure.told(error) from None
        raise_unless(verdict.all_in_place(self._capture.since(start), origin(self._capture)))
        return result


class Clones(Listed):
    """The clone list, compared by ``==``, which raises by itself when there is a difference.

    Nothing that can be asked of it holds where nothing was compiled, or where the pass wrote in place
    although our analysis forbids it.

    Args:
        graphs: returns the graphs that are meant.
        where: the pass and the backend, for the reader.
        accepts: is told what was expected and what came in graphs that tell something, and returns whether
            other clones are all right, for their list is rewritten.
    """

    fixture = "assert_clones"
    noun = "clones"
    one = "clone"
    instead_of_count = "cloned"

    def __init__(
        self, graphs: Callable[[], Sequence[CapturedGraph]], where: str, accepts: Accepts | None = None
    ) -> None:
        super().__init__(graphs, where)
        self._accepts = accepts

    def __contains__(self, label: object) -> bool:
        """Return whether a label is cloned; one that no candidate bears is an error, not ``False``.

        The label may be a pattern, an operator or an argument alone, as for ``assert_reinplaced``.
        """
        __tracebackhide__ = True
        self._labels()
        if not isinstance(label, str):
            raise TypeError(f"expected a label as a string, got {label!r}")
        raise_unless(verdict.all_known(self._graphs(), [label], self._where))
        return any(outcome.bears(label) for outcome in self._cloned())

    def membership(self, op: str, name: object) -> list[str] | None:
        """Return why ``name in`` or ``name not in`` does not hold, with the clones that it is about."""
        borne = [outcome for outcome in self._cloned() if outcome.bears(str(name))]
        if op not in ("in", "not in"):
            return None
        count = plural(len(borne), "clone") if borne else "no clone"
        head = f"{count} {'bear' if borne[1:] else 'bears'} the name {name!r} ({self._where})"
        return [head, *explained(borne or self._cloned())]

    def _found(self) -> list[str]:
        return [outcome.label for outcome in self._cloned()]

    def _cloned(self) -> list[Outcome]:
        return [o for o in verdict.outcomes_of(self._graphs()) if not o.reinplaced]

    def _known(self) -> Verdict:
        return verdict.exercised(self._graphs(), self._where)

    def _compared(self, wanted: list[str]) -> Verdict:
        graphs = self._graphs()
        found = verdict.clones_are(graphs, wanted, self._where)
        if (
            self._accepts is not None
            and verdict.exercised(graphs).passed
            and self._accepts(wanted, self._found())
        ):
            return Verdict()
        # Where lists are rewritten, the section on expected clones says why this one is not.
        return found if self._accepts is None else dataclasses.replace(found, advice="")


class AssertClones(Clones):
    """The clones of all that the test compiled so far; called with a callable, only of what that compiles.

    Args:
        capture: the running capture of the test.
        accepts: as that of ``Clones``.
    """

    def __init__(self, capture: Capture, accepts: Accepts | None = None) -> None:
        super().__init__(lambda: capture.since(0), origin(capture), accepts)
        self._capture = capture

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Clones:
        """Compile ``fn`` and call it; return its clones, to be compared with ``==``."""
        __tracebackhide__ = True
        arguments.check(fn, args, kwargs)
        start = len(self._capture.graphs)
        fast = call.compiled(fn)
        eager.beside(self._capture, fn, args, kwargs, lambda: fast(*args, **kwargs))
        graphs = self._capture.since(start)
        found = Clones(lambda: graphs, self._where, self._accepts)
        self._called.append(found)
        return found
