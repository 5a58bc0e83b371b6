"""Everything that Inductor's passes do inside a block, a ledger for each graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from torch.fx import GraphModule, Node
from torch.nn import Module

from ._torch import following
from .ledger import Ledger
from .recorder import Recorder


class Watch:
    """The ledgers of the graphs that went through Inductor's stages inside ``watching``.

    A graph has one ledger for the joint and the post-grad stage, where both see the same one. In training the
    joint graph, the forward and the backward have one each; so has a subgraph.

    Args:
        only: what keeps the ledger of the one graph that is followed; by default all graphs are.
    """

    def __init__(self, only: Recorder | None = None) -> None:
        self._recorders: dict[GraphModule, Recorder] = {} if only is None else {only.gm: only}
        self._takes_others = only is None
        self._is_pausing = False

    @property
    def graphs(self) -> tuple[GraphModule, ...]:
        """The graphs that have a ledger, in the order in which they came."""
        return tuple(self._recorders)

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """The ledgers so far, in the order in which their graphs came."""
        return tuple(recorder.ledger for recorder in self._recorders.values())

    def of(self, gm: Module) -> Ledger | None:
        """Return the ledger of a graph, ``None`` where no pass was seen on it."""
        recorder = self._recorders.get(gm)  # type: ignore[call-overload]
        return None if recorder is None else recorder.ledger

    def forget(self, gm: Module) -> None:
        """Drop the ledger of a graph, if it has one, with all states that it holds."""
        self._recorders.pop(gm, None)  # type: ignore[call-overload]

    @contextlib.contextmanager
    def pausing(self) -> Iterator[None]:
        """Follow nothing inside the block: passes that are run once more are nobody's compilation."""
        outer, self._is_pausing = self._is_pausing, True
        try:
            yield
        finally:
            self._is_pausing = outer

    def begin(self, gm: GraphModule) -> None:
        """Take a graph as it is now, unless it is known."""
        if self._takes_others and not self._is_pausing and gm not in self._recorders:
            self._recorders[gm] = Recorder(gm)

    def settle(self, gm: GraphModule) -> None:
        """Look at a graph once more, for what came after the last pass."""
        recorder = self._followed(gm)
        if recorder is not None:
            recorder.look()

    @contextlib.contextmanager
    def passed(self, gm: GraphModule, stage: str, name: str) -> Iterator[None]:
        """Follow a pass over a graph that was handed to a stage."""
        recorder = self._followed(gm)
        if recorder is None:
            yield
            return
        # Where one graph is followed, whoever runs the passes says what their stage is.
        with recorder.passed(name, stage if self._takes_others else ""):
            yield

    @contextlib.contextmanager
    def rule(self, gm: GraphModule, name: str, matched: Iterable[Node], node: Node) -> Iterator[None]:
        """Follow one application of a rule."""
        recorder = self._followed(gm)
        with contextlib.nullcontext() if recorder is None else recorder.rule(name, matched, node):
            yield

    def _followed(self, gm: GraphModule) -> Recorder | None:
        return None if self._is_pausing else self._recorders.get(gm)


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """Keep a ledger of each graph that goes through Inductor's joint and post-grad stages inside the block.

    Nothing is checked here: ``checked`` does that with each ledger.
    """
    watch = Watch()
    with following(watch):
        yield watch
