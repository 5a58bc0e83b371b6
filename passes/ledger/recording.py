"""A pipeline of anybody's over one graph, followed pass by pass and rule by rule."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from torch.fx import GraphModule

from ..errors import ReinplaceError
from ..graph.sizes import fake_mode_of
from ..verify.foreign import name_of, on_graph_module
from . import _torch
from .checking import checked
from .ledger import Ledger
from .recorder import Recorder
from .watch import Watch

Pipeline = Callable[..., Any] | Sequence[Callable[..., Any]] | str
Checks = Literal["off", "passes", "rules"]
_STAGES = {"joint": _torch.joint, "post_grad": _torch.post_grad}


def record(
    gm: GraphModule,
    pipeline: Pipeline,
    *,
    inputs: Sequence[Any] | None = None,
    check: Checks = "off",
    regenerated: frozenset[int] = frozenset(),
) -> Ledger:
    """Run a pipeline over a graph and return what each of its passes, and each rule in them, did.

    Args:
        gm: a functional graph, which is rewritten.
        pipeline: a callable over the graph or its module; an object that is called and has its passes in a
            list ``passes``; ``"joint"`` or ``"post_grad"``, Inductor's own stage; or a list of all these.
        inputs: real tensors, one value for each placeholder; needed to check.
        check: ``"passes"`` checks the whole way and halves it where its ends differ; ``"rules"`` holds each
            application against the graph just before it.
        regenerated: the outputs that the caller makes anew, as ``verify.check`` takes them.

    Raises:
        ReinplaceError: the pipeline is none, or ``inputs`` are missing.
        Exception: what a pass raises, with a note that names the pass; its attribute ``ledger`` is the
            ledger up to there.
    """
    ledger, error = recorded(gm, pipeline, inputs=inputs, check=check, regenerated=regenerated)
    if error is None:
        return ledger
    if ledger.crash is not None:
        error.add_note(
            f"{ledger.crash}, after {len(ledger.applications)} applications; they are in error.ledger"
        )
        error.ledger = ledger  # type: ignore[attr-defined]
    raise error


def recorded(
    gm: GraphModule,
    pipeline: Pipeline,
    *,
    inputs: Sequence[Any] | None = None,
    check: Checks = "off",
    regenerated: frozenset[int] = frozenset(),
) -> tuple[Ledger, Exception | None]:
    """Return what ``record`` does, and what a pass raised, up to which the ledger goes."""
    if check not in ("off", "passes", "rules"):
        raise ReinplaceError(f'expected check="off", "passes" or "rules", got {check!r}')
    if check != "off" and inputs is None:
        raise ReinplaceError(f"expected inputs for check={check!r}: a real tensor for each placeholder")
    wanted = len(gm.graph.find_nodes(op="placeholder"))
    if inputs is not None and len(inputs) != wanted:
        raise ReinplaceError(f"expected {wanted} inputs, one for each placeholder, got {len(inputs)}")
    recorder, error = Recorder(gm), None
    try:
        with _torch.following(Watch(recorder)):
            for name, part in _parts(pipeline):
                _followed(recorder, gm, name, part)
    except Exception as raised:  # noqa: BLE001  (told with the ledger)
        error = raised
        gm.recompile()
    recorder.look()
    if check == "off" or inputs is None:
        return recorder.ledger, error
    return checked(recorder.ledger, inputs, each=check == "rules", regenerated=regenerated), error


def _followed(recorder: Recorder, gm: GraphModule, name: str, part: Callable[..., Any] | None) -> None:
    if part is None:
        recorder.stage = name
        _STAGES[name](gm, fake_mode_of(gm.graph))
        return
    recorder.stage = ""
    with recorder.passed(name), _members_told(part, recorder):
        on_graph_module(part)(gm)
    gm.recompile()


def _parts(pipeline: Pipeline) -> Iterator[tuple[str, Callable[..., Any] | None]]:
    """Yield the passes of a pipeline, each with its name; of a stage of Inductor its name alone."""
    if isinstance(pipeline, str):
        if pipeline not in _STAGES:
            raise ReinplaceError(f"expected a pipeline, {' or '.join(map(repr, _STAGES))}, got {pipeline!r}")
        yield pipeline, None
    elif isinstance(pipeline, list | tuple):
        for part in pipeline:
            yield from _parts(part)
    elif callable(pipeline):
        yield name_of(pipeline), pipeline
    else:
        raise ReinplaceError(
            f"expected a callable, a stage or a list of them as a pipeline, got {pipeline!r}"
        )


@contextlib.contextmanager
def _members_told(pipeline: Any, recorder: Recorder) -> Iterator[None]:
    """Follow each pass of a manager by itself, while it has them in a list ``passes``."""
    members = getattr(pipeline, "passes", None)
    if not isinstance(members, list):
        yield
        return
    given = list(members)
    members[:] = [_Member(one, recorder) if callable(one) else one for one in given]
    try:
        yield
    finally:
        members[:] = given


class _Member:
    """One pass of a manager, which is everything that the pass is, and is followed when it is called."""

    def __init__(self, member: Any, recorder: Recorder) -> None:
        self._member, self._recorder = member, recorder

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._recorder.passed(name_of(self._member)):
            return self._member(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._member, name)
