"""What Inductor's passes, and the pass under test among them, did to each graph that a capture sees."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..base import _torch
from . import calls

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from ..passes.ledger import Ledger, Watch

_NOT_CALLED = "its graph was not called with real tensors"
_NOT_TAKEN = "its subgraph was not called"
_NOT_RUN = "its post-grad passes did not run in this process"
# How many nodes are run at most to check each application of one graph by itself: half a second. More would
# be several times what the passes themselves take (`python -m benchmarks.ledger_seconds`).
_MOST_NODES = 5_000


@dataclasses.dataclass(frozen=True, slots=True)
class Followed:
    """One graph on its way through the passes.

    Args:
        name: how it is called, as in reports; the joint graph of a training step ``"[joint 0/0]"``. One that
            was not compiled to its end is called by its last stage.
        ledger: what was done to it.
        inputs: what it was called with; ``None`` where that is not known.
        regenerated: the outputs that its caller makes anew.
        why: why there are no inputs.
        inside: of a subgraph its name in the module of the graph that calls it, which is the one before it.
    """

    name: str
    ledger: Ledger
    inputs: tuple[Any, ...] | None = None
    regenerated: frozenset[int] = frozenset()
    why: str = _NOT_CALLED
    inside: str = ""

    def checked(self) -> Ledger:
        """Return the ledger with a finding for each application, or with why there is none."""
        from ..passes.ledger import checked, unchecked

        if self.inputs is None:
            return unchecked(self.ledger, self.why)
        return checked(self.ledger, self.inputs, each=True, regenerated=self.regenerated, most=_MOST_NODES)


class Compiled:
    """One compiled graph, with all graphs whose passes led to it.

    Args:
        following: who follows it.
        name: how it is called.
        gm: the graph, in the compiler's hands.
        joint: the graph that it was cut out of; ``None`` where there is none.
        is_backward: whether it is the backward of another one.
    """

    def __init__(
        self,
        following: Following,
        name: str,
        gm: GraphModule,
        joint: GraphModule | None,
        *,
        is_backward: bool,
    ) -> None:
        self._following = following
        self.graph_id: str = name
        self._placeholders = _placeholders(gm)
        self._regenerated = frozenset() if is_backward else _torch.regenerated_outputs(gm.graph)
        self._last = self._gm = gm
        self._joint = joint
        self._problem = ""
        self._found: list[dict[str, Any]] | None = None
        self.parts: list[Followed] = []

    def came(self, gm: GraphModule) -> None:
        """Note a graph whose passes count: the last one is the whole graph, maybe from another attempt."""
        self._last = gm

    def wrapped(self, compiled: Any) -> Any:
        """Return the compiled graph, the first call of which is noted."""
        self._following.compiled.append(self)
        self.parts = self._parts()
        whole = self._following.watch.of(self._last)
        if whole is None or not any(run.stage == "post_grad" for run in whole.passes):
            self._problem = _NOT_RUN
        seen = calls.told(compiled, self._note)
        if seen is None:
            why = f"its graph was compiled to a {type(compiled).__name__}, whose calls are not seen"
            self.parts = [dataclasses.replace(part, why=why) for part in self.parts]
        return compiled if seen is None else seen

    @property
    def problem(self) -> str:
        """Why something is not known of its passes, or was not checked; empty where all is."""
        return self._problem

    @property
    def told(self) -> dict[str, Any]:
        """What is known now, as a captured graph has it."""
        return {"applications": tuple(self.applications), "unfollowed": self.problem}

    @property
    def applications(self) -> list[dict[str, Any]]:
        """The applications so far, as plain data, each with the name of its graph."""
        if self._found is not None:
            return self._found
        if not self._following.checks:
            return _plain(self.parts)
        uncalled = [dataclasses.replace(part, inputs=None) for part in self.parts]
        return _plain([dataclasses.replace(part, ledger=part.checked()) for part in uncalled])

    def _parts(self) -> list[Followed]:
        joint, early = list[Followed](), list[Followed]()
        # A subgraph may be one of both, and is told with the graph that runs.
        main = list(self._with_inner(self._last, self.graph_id))
        if self._joint is not None:
            joint = list(self._with_inner(self._joint, self.graph_id.replace("[fw", "[joint")))
        if self._last is not self._gm and (ledger := self._following.watch.of(self._gm)) is not None:
            early.append(Followed(self.graph_id, ledger.before("post_grad"), None, self._regenerated))
        return [*joint, *early, *main]

    def _with_inner(self, gm: GraphModule, name: str) -> Iterator[Followed]:
        """Yield a graph and its subgraphs, but for those that were told with another one."""
        following = self._following
        for inside, module in gm.named_modules():
            ledger = following.watch.of(module)
            if ledger is None or ledger in following.told:
                continue
            following.told.add(ledger)
            if inside:
                yield Followed(f"{name[:-1]} {inside}]", ledger, inside=inside)
            else:
                yield Followed(name, ledger, regenerated=self._regenerated)

    def _note(self, args: Sequence[Any]) -> None:
        """Take what the graph is called with, the first time; and check it, if it is to be."""
        following = self._following
        is_noted = self._found is not None or any(part.inputs is not None for part in self.parts)
        if is_noted or _torch.has_fake(args):
            return
        try:
            with following.watch.pausing():
                given = dict(zip(self._placeholders, args, strict=False))
                self.parts = list(_called([self._with_inputs(part, given) for part in self.parts]))
                if following.checks:
                    self._check()
        except Exception as error:  # noqa: BLE001  (looking on must not break the user's program)
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            self._problem = f"checking failed, which is a defect of pytest-reinplace: {text}"
            self.parts = [dataclasses.replace(part, inputs=None, why=self._problem) for part in self.parts]

    def _with_inputs(self, part: Followed, given: Mapping[str, Any]) -> Followed:
        from ..passes import ReinplaceError
        from ..passes.ledger import joint_inputs
        from ..passes.verify import cloned

        if part.why != _NOT_CALLED or part.inside:
            return part
        inputs = list(given.values())
        if part.name.startswith("[joint"):
            try:
                inputs = joint_inputs(part.ledger.graph_before(0), given)
            except ReinplaceError as error:
                return dataclasses.replace(part, why=str(error))
        return dataclasses.replace(part, inputs=tuple(inputs if self._following.checks else cloned(inputs)))

    def _check(self) -> None:
        """Check all, and let go of the inputs and of the states of the graphs."""
        following = self._following
        self._found = _plain([dataclasses.replace(part, ledger=part.checked()) for part in self.parts])
        self.parts = []
        for gm in (self._joint, self._gm, self._last):
            for module in () if gm is None else gm.modules():
                following.watch.forget(module)


def _called(parts: Iterable[Followed]) -> Iterator[Followed]:
    """Yield parts, the subgraphs among them with what the graph before them calls them with."""
    from ..passes import ReinplaceError
    from ..passes.ledger import inner_inputs

    root, why, found = None, _NOT_CALLED, dict[str, list[Any]]()
    for part in parts:
        if not part.inside:
            root, why, found = part, _NOT_TAKEN, {}
            yield part
            continue
        if root is not None and root.inputs is not None:
            try:
                found = inner_inputs(root.ledger.graph_before(0), root.inputs)
            except ReinplaceError as error:
                why = f"its graph cannot be run for it: {error}"
        root = None
        inputs = found.get(part.inside)
        yield (
            dataclasses.replace(part, why=why)
            if inputs is None
            else dataclasses.replace(part, inputs=tuple(inputs))
        )


def _plain(parts: Iterable[Followed]) -> list[dict[str, Any]]:
    """Return all applications as plain data, numbered in their order, each with the name of its graph."""
    found = [{"graph": part.name, **a.to_dict()} for part in parts for a in part.ledger.applications]
    return [{**one, "number": i} for i, one in enumerate(found)]


class Following:
    """Keeps the ledgers of one capture.

    Args:
        checks: whether each graph is checked at its first call; otherwise what it is called with is kept.

    ``compiled`` has the graphs that were compiled, ``told`` the ledgers that belong to one of them.
    """

    watch: Watch

    def __init__(self, *, checks: bool) -> None:
        self.checks = checks
        self.compiled: list[Compiled] = []
        self.told: weakref.WeakSet[Ledger] = weakref.WeakSet()
        self._cut: weakref.WeakSet[GraphModule] = weakref.WeakSet()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Keep ledgers inside the block; Inductor is loaded by then."""
        from ..passes.ledger import watching

        with watching() as self.watch:
            yield

    def compiling(self, name: str, gm: GraphModule, kwargs: Mapping[str, Any]) -> Compiled:
        """Begin to follow a graph that is about to be compiled.

        Args:
            name: how it is called.
            gm: the graph.
            kwargs: what Inductor's ``compile_fx_inner`` is told beside it.
        """
        is_backward, is_inference = (bool(kwargs.get(key)) for key in ("is_backward", "is_inference"))
        joint = None if is_backward or is_inference else self._joint_of(gm)
        return Compiled(self, name, gm, joint, is_backward=is_backward)

    def _joint_of(self, gm: GraphModule) -> GraphModule | None:
        """Return the joint graph that a forward was cut out of; ``None`` where its passes were not seen."""
        own = {name for name in _placeholders(gm) if name.startswith("primals_")}
        for graph in reversed(self.watch.graphs):
            names = _placeholders(graph)
            is_joint = own <= set(names) and any(name.startswith("tangents_") for name in names)
            if is_joint and graph not in self._cut:
                self._cut.add(graph)
                return graph
        return None

    @property
    def crash(self) -> str:
        """The pass and the rule that raised first, with what they raised; empty where none did."""
        ledgers = self.watch.ledgers if hasattr(self, "watch") else ()
        return next((str(ledger.crash) for ledger in ledgers if ledger.crash is not None), "")

    def all(self) -> list[Followed]:
        """Return all graphs, in the order in which they came; those that were not compiled as well."""
        found = {id(part.ledger): part for one in self.compiled for part in one.parts}
        others = (ledger for ledger in self.watch.ledgers if id(ledger) not in found)
        named = {id(one): Followed(f"[{_stage(one)} {i}]", one) for i, one in enumerate(others)}
        return [{**found, **named}[id(ledger)] for ledger in self.watch.ledgers]


def _placeholders(gm: GraphModule) -> list[str]:
    return [node.name for node in gm.graph.find_nodes(op="placeholder")]


def _stage(ledger: Ledger) -> str:
    last = next((run.stage for run in reversed(ledger.passes)), "")
    return last.removesuffix("_passes") or "graph"
