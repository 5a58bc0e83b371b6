"""Checks graphs that are compiled, on what their first call is given: all of them, or the suspicious ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..base import _torch
from ..judge.before import Unseen
from . import calls
from .replay import Replay
from .verified import Verified

if TYPE_CHECKING:
    from torch.fx import Graph, GraphModule

    from .pass_under_test import PassUnderTest

_NEVER_CALLED = "it was never called with real tensors"
# A graph is checked unasked only where that is cheap: it runs several times, on copies.
_MOST_UNASKED = 64 << 20


class Watched:
    """One graph from its compilation to its first call.

    Args:
        graph_id: how it is called.
        gm: the functional graph, in the compiler's hands.
        replay: the passes, to be run once more for a small program that shows a difference; ``None`` where
            nobody asked for one. Then the graph is checked only if it is found suspicious.
        unseen: the outputs that the caller does not see; ``None`` where that is not known.

    ``is_wanted`` says whether it is checked.
    """

    def __init__(self, graph_id: str, gm: GraphModule, replay: Replay | None, unseen: Unseen | None) -> None:
        self.graph_id = graph_id
        self.is_wanted: bool = replay is not None
        self._replay = replay
        self.unseen: Unseen | None = unseen
        self._before: GraphModule | None = None
        self._after: GraphModule | None = None
        self._verified: Verified | None = None
        self._guarded("copying the graph", lambda: self._set_before(gm))

    @property
    def verified(self) -> Verified:
        """What is known now."""
        if self._verified is not None:
            return self._verified
        if self._after is None:
            return self._unchecked("its post-grad passes did not run in this process")
        return self._unchecked(_NEVER_CALLED)

    @property
    def told(self) -> dict[str, Any]:
        """What is known now, as a captured graph has it."""
        return {"verified": self.verified}

    def note(self, gm: GraphModule) -> None:
        """Note the graph that all post-grad passes have left."""
        if self._after is None and self.is_wanted:
            self._guarded("copying the graph", lambda: self._set_after(gm))

    def misordered(self, what: str) -> None:
        """Note that what Inductor scheduled is not the graph, whatever the graph computes."""
        if not self.is_wanted:
            return
        text, why = f"Inductor's schedule is wrong: {what}", "the graph itself is right"
        self._verified = Verified(self.graph_id, "different", text, no_program=why)

    def wrapped(self, compiled: Any) -> Any:
        """Return a compiled graph whose first call is checked, if it is to be."""
        if not self.is_wanted:
            return compiled
        seen = calls.told(compiled, self._note_call)
        if seen is None and self._verified is None:
            self._verified = self._unchecked(
                f"it was compiled to a {type(compiled).__name__}, whose calls are not seen"
            )
        return compiled if seen is None else seen

    def _note_call(self, args: list[Any]) -> None:
        if self._verified is None:
            self._guarded("checking it", lambda: self._check(args))

    def _set_before(self, gm: GraphModule) -> None:
        from ..passes.verify import copied

        self._before = copied(gm)

    def _set_after(self, gm: GraphModule) -> None:
        from ..passes.verify import copied

        self._after = copied(gm)

    def _check(self, inputs: Sequence[Any]) -> None:
        if self._before is None or self._after is None or _torch.has_fake(inputs):
            return
        from ..passes.verify import check
        from .reproduction import reproduced

        if self._replay is None and _torch.nbytes_of(inputs) > _MOST_UNASKED:
            self._verified = self._unchecked("its inputs are large; --reinplace-verify compares them")
            return
        regenerated = self.unseen.regenerated if self.unseen else frozenset()
        found = check(self._before, self._after, inputs, regenerated=regenerated)
        if found.is_different and self._replay is not None:
            self._verified = reproduced(self.graph_id, self._before, inputs, found, self._replay)
        else:
            program = "" if self._replay else "add --reinplace-verify to get one"
            self._verified = Verified(
                self.graph_id, found.status, found.text, found.node, found.source, no_program=program
            )
        self._before = self._after = None

    def _guarded(self, what: str, work: Callable[[], None]) -> None:
        """Do something that must not break the user's program, whatever happens."""
        try:
            work()
        except Exception as error:  # noqa: BLE001  (looking on must not break the user's program)
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            self._verified = self._unchecked(f"{what} failed, which is a defect of pytest-reinplace: {text}")

    def _unchecked(self, reason: str) -> Verified:
        return Verified(self.graph_id, "not-checked", reason)


class Verifier:
    """Watches the graphs of one capture.

    Args:
        under_test: the pass under test.
        checks_all: whether every graph is checked, with a small program for each difference; otherwise only
            those that turn out to be suspicious are.
    """

    def __init__(self, under_test: PassUnderTest, *, checks_all: bool) -> None:
        self._under_test = under_test
        self.checks_all = checks_all
        self.watched: list[Watched] = []

    def compiled(
        self, graph_id: str, gm: GraphModule, patches: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> Watched:
        """Begin to watch a graph that is about to be compiled.

        Args:
            graph_id: how it is called.
            gm: the functional graph.
            patches: the configuration that it is compiled with.
            kwargs: what Inductor's ``compile_fx_inner`` is told beside it.
        """
        is_inference, is_backward = (bool(kwargs.get(name)) for name in ("is_inference", "is_backward"))
        replay = Replay(self._under_test, patches, is_inference) if self.checks_all else None
        watched = Watched(graph_id, gm, replay, _unseen(gm.graph, is_backward))
        if self.checks_all:
            self.watched.append(watched)
        return watched


def _unseen(graph: Graph, is_backward: bool) -> Unseen | None:
    if not _torch.origins(graph):
        return None
    return Unseen() if is_backward else Unseen(_torch.regenerated_outputs(graph), _torch.saved_outputs(graph))
