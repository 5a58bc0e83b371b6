"""What Inductor's passes, and the pass under test among them, did to each graph of one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import _torch
from ..capture.capture import Capture
from ..capture.graph_backend import compile_graph
from . import call

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from ..passes.ledger import Ledger, Watch


@dataclasses.dataclass(frozen=True, slots=True)
class Followed:
    """One graph on its way through the passes.

    Args:
        name: how it is called, as in reports; one that went no further is called by its last stage, as the
            joint graph of training is: ``"[joint 1]"``.
        ledger: what was done to it.
        inputs: what it was called with; ``None`` where it was not called.
        regenerated: the outputs that its caller makes anew.
    """

    name: str
    ledger: Ledger
    inputs: tuple[Any, ...] | None = None
    regenerated: frozenset[int] = frozenset()

    def checked(self, *, each: bool) -> Ledger:
        """Return the ledger with a finding for each application; as it is where nothing can be checked."""
        from ..passes.ledger import checked

        if self.inputs is None:
            return self.ledger
        return checked(self.ledger, self.inputs, each=each, regenerated=self.regenerated)


def follow(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    pass_name: str,
    folder: Path,
    *,
    dynamic: bool | None = None,
) -> tuple[list[Followed], Exception | None]:
    """Compile and call a function on the graph backend, and follow its graphs.

    Args:
        fn: a function or module.
        args: its arguments.
        kwargs: its keyword arguments.
        pass_name: the pass under test.
        folder: where modules of passes are looked for, after ``sys.path``.
        dynamic: whether sizes are symbols, as ``torch.compile`` takes it.

    Returns:
        The graphs in the order in which they came, and what was raised, up to which they go.

    Raises:
        pass_under_test.PassError: there is no such pass.
    """
    from ..passes.ledger import watching

    _torch.load_inductor()  # a capture sees a loaded one from its beginning, before the ledgers do
    noted = _Noted()
    with Capture(pass_name, "graph", folder, interpret=noted.compile), watching() as noted.watch:
        error = None
        try:
            call.compiled(fn, dynamic=dynamic)(*args, **kwargs)
        except Exception as raised:  # noqa: BLE001  (told with what was followed)
            error = raised
    return noted.all(), error


class _Noted:
    """Stands in the place of the compiler, and notes what each graph is called with."""

    watch: Watch

    def __init__(self) -> None:
        self._found: dict[int, Followed] = {}

    def compile(self, gm: GraphModule, example_inputs: Any, **kwargs: Any) -> Callable[[list[Any]], Any]:
        """Take what ``compile_fx_inner`` takes, and return a boxed callable."""
        direction = "bw" if kwargs.get("is_backward") else "fw"
        name = f"[{direction} {_torch.compile_id()}]"
        regenerated = frozenset() if kwargs.get("is_backward") else _torch.regenerated_outputs(gm.graph)
        interpreted = compile_graph(gm, example_inputs, **kwargs)
        self.watch.settle(gm)
        ledger = self.watch.of(gm)
        assert ledger is not None  # it was just looked at
        self._found[id(ledger)] = Followed(name, ledger, None, regenerated)

        def run(args: list[Any]) -> Any:
            self._note(ledger, args)
            return interpreted(args)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    def _note(self, ledger: Ledger, args: list[Any]) -> None:
        from ..passes.verify import cloned

        known = self._found[id(ledger)]
        if known.inputs is None and not _torch.has_fake(args):
            self._found[id(ledger)] = dataclasses.replace(known, inputs=tuple(cloned(args)))

    def all(self) -> list[Followed]:
        """Return all graphs, those that were not compiled to the end as well."""
        others = (ledger for ledger in self.watch.ledgers if id(ledger) not in self._found)
        named = {id(one): Followed(f"[{_stage(one)} {i}]", one) for i, one in enumerate(others)}
        return [{**self._found, **named}[id(ledger)] for ledger in self.watch.ledgers]


def _stage(ledger: Ledger) -> str:
    last = next((run.stage for run in reversed(ledger.passes)), "")
    return last.removesuffix("_passes") or "graph"
