"""The pass inside Inductor, by its public hooks, and what it takes to be right there.

Before AOTAutograd ``NotePass`` notes what calls that write are given. Before and after the patterns of the
joint-graph stage ``ProtectPass`` drops copies and views that change nothing, with Inductor's own no-op
removal switched off, which drops copies that keep two tensors apart, too. After the post-grad patterns
``ReinplacePass`` rewrites the graph, with Inductor's own reinplacing switched off. When the scheduler fuses,
``FusionVeto`` refuses what would race, and ``ScheduleCheck`` looks at the outcome.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from torch.fx import Graph, Node

from .. import _torch
from ..errors import OutsideTensorError
from ..graph.collector import paused
from ..graph.journal import Journal, erase
from ..ops.computed import is_factory
from ..ops.schema import is_operator, schema_of, tensors
from ..ops.wrapper_names import calls_of
from ..post_grad import wrappers
from ..reinplacing.facts.decision import Decision
from ..reinplacing.facts.options import Options, Ordering, Policy, Stage
from ..reinplacing.facts.target import Target
from ..reinplacing.kinds import kind
from ..reinplacing.layout.true_values import retell_begins
from ..reinplacing.model.fused import differs_for_speed
from ..reinplacing.offered import offered
from ..reinplacing.run import reinplace_graph
from ..report import Report
from ..required import checked, copied, freely, in_place
from . import computed_in_inputs, known_names
from ._torch import (
    call_kernel_of,
    custom_graph_pass,
    inductor_stage,
    regenerated_outputs,
    told_of_begins,
    told_of_results,
)
from .caller import caller_of
from .defects import defended
from .identity import state
from .mend import concatenated, epilogues, single_lists, windows
from .mend.copied_views import clone_sources
from .mend.input_offsets import put_into_copies, rebase
from .mend.marked_written import mark
from .mend.returned_views import return_inputs
from .mend.stored_early import realize
from .mend.wrapper_operands import copy_operands
from .mend.wrapper_views import move_with_bases
from .protect import NotePass, ProtectPass, RulesPass, drops_no_ops
from .schedule import _torch as schedule
from .schedule import attempts, check
from .schedule.hook import behind, warn
from .schedule.veto import FusionVeto, why_unwatched
from .skip import skip
from .target import COPYING, INDUCTOR

_LEFT = "Inductor's own pass decides"
_SKIPPED = "reinplacing skipped, every wrapper clones"
Observer = Callable[[Report, Graph], None]
_observers: contextvars.ContextVar[tuple[Observer, ...]] = contextvars.ContextVar("observers", default=())


if TYPE_CHECKING:
    from .._torch import CustomGraphPass
else:
    CustomGraphPass = custom_graph_pass()


@contextlib.contextmanager
def observe(callback: Observer, *, every: bool = False) -> Iterator[None]:
    """Call ``callback(report, graph)`` for every graph that a ``ReinplacePass`` rewrites inside.

    A graph that is lowered several times is seen once, as it is kept, when that is known; with ``every``
    each time, and at once.
    ``graph`` is the rewritten graph, still in Inductor's hands: look, do not touch. A graph that comes
    from Inductor's cache is not rewritten again and not seen.
    """

    def see(report: Report, graph: Graph) -> None:
        if every:
            callback(report, graph)
        else:
            attempts.once_settled(functools.partial(callback, report, graph))

    token = _observers.set((*_observers.get(), see))
    try:
        yield
    finally:
        _observers.reset(token)


@dataclasses.dataclass(frozen=True, slots=True)
class ReinplacePass(CustomGraphPass):
    """Alias-exact reinplacing as an Inductor post-grad pass (``post_grad_custom_post_pass``).

    A graph that cannot be analysed is left functional, each wrapper marked to clone everything, and a
    warning names the reason: a compile never fails because of this pass.

    Args:
        name: how logs and caches call it.
        policy: as for ``pytest_reinplace.passes.reinplace``.
        order: as for ``pytest_reinplace.passes.reinplace``.
        require: as for ``inductor_options``.
    """

    name: str = "reinplace"
    policy: Policy = "memory"
    order: Ordering = "free"
    require: Iterable[str] | None = None

    def __post_init__(self) -> None:
        Options(self.policy, self.order)
        object.__setattr__(self, "require", checked(self.require))

    def apply(self, graph: Graph) -> Report:
        """Rewrite a graph and return what was decided.

        Where nobody would refuse the fusions that a write in place makes wrong, none is written, nor where
        the schedule that came of it was wrong.
        """
        return self._applied(graph)[0]

    @paused()
    def _applied(self, graph: Graph) -> tuple[Report, str]:
        """Rewrite a graph and return what was decided, or why nothing was."""
        attempts.now().by_peak = self.policy == "peak"
        why, journal = why_unwatched(), Journal(graph)
        if why:
            why = f"{_SKIPPED}: fusions are not checked, {why}"
            warn(why)
        why = why or attempts.why_functional()
        try:
            try:
                if not _mutates_in_regions(graph):
                    report = self._rewritten(graph, COPYING if why else INDUCTOR)
                    return Report() if why else report, why
                theirs = f"{_LEFT}: a nested region writes its operands"
            except OutsideTensorError as error:  # what the program does only its memory says
                theirs = skip(journal, _LEFT, error)
            inductor_stage(graph)
            rebase(graph)
            why = why or theirs
        except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
            why = skip(journal, _SKIPPED, error)
            with contextlib.suppress(Exception):  # what Inductor makes of wrappers is mended all the same
                return self._rewritten(graph, None), why
            journal.restore()
        clone_all(graph)
        return Report(), why  # nothing is written in place, and the graph may be none

    def _rewritten(self, graph: Graph, target: Target | None) -> Report:
        """Rewrite a graph for a target, if for any, and mend what Inductor would make of it."""
        if defended("offset-after-a-store"):
            retell_begins(graph)
        move_with_bases(graph)
        report = self._reinplaced(graph, target) if target else Report()
        if target is INDUCTOR and self.order == "free":
            attempts.now().writes |= computed_in_inputs.compute(graph) > 0
            _store_early(graph)
        single_lists.store_apart(graph)
        windows.reshape(graph)
        copy_operands(graph)
        if defended("clone-at-an-offset"):
            wrappers.call(graph)
        clone_all(graph)
        call_kernels(graph)
        realize(graph)
        clone_sources(graph)
        concatenated.keep_apart(graph)
        mark(graph)
        delay_buffers(graph)
        rebase(graph)
        put_into_copies(graph)
        return report

    def _reinplaced(self, graph: Graph, target: Target) -> Report:
        """Write in place what may be; where a caller makes an output anew, nothing is kept for it."""
        if not kind.occurs_in(graph, target):
            attempts.now().reinplaced(writes=False)
            return Report()
        policy: Policy = "speed" if "speed" in attempts.now().changes else self.policy
        asking = return_inputs(graph, regenerated_outputs(graph))
        options = Options(policy, self.order, target, caller_of(graph))
        single_lists.take_apart(single_lists.singles(graph))
        report = reinplace_graph(graph, options, _is_settled)
        erase(graph, asking)
        return report

    def __call__(self, graph: Graph) -> None:
        """Rewrite a graph, as Inductor calls it, tell the observers, and see to what must be in place."""
        required, options = tuple(self.require or ()), Options(self.policy, self.order, INDUCTOR)
        candidates = offered(graph, options) if required else ()
        known_names.check(required, candidates)
        kept = self.order == "keep" and copied(required, Report(tuple(candidates)), (), "")
        freed = in_place(offered(graph, dataclasses.replace(options, order="free"))) if kept else frozenset()
        report, why = self._applied(graph)
        for callback in _observers.get():
            callback(report, graph)
        left = copied(required, report, candidates, why)
        attempts.must_not_copy(left if why else freely(left, freed), why)

    def uuid(self) -> Any:
        """Identify the pass by its source and by what was declared about operators, and told of outputs.

        So Inductor's caches stay on and stay right. Graphs of one text may differ in which of their outputs
        are made anew, and in where their inputs begin.
        """
        chosen = (self.name, self.policy, self.order, self.require)
        try:
            told = (*told_of_results(), *told_of_begins())
        except Exception as error:  # noqa: BLE001  (a compile never fails because of us)
            warn(f"compiled graphs are not kept on this torch: {error!r}")
            told = (secrets.token_hex(),)  # no other graph's, so that nothing that was kept is found
        return ("pytest-reinplace", *chosen, *told, *state())


def _is_settled(decision: Decision) -> bool:
    """Tell the attempt what was decided in it, unless lists are taken apart, after which it is no more.

    What is left of a list that is written in part would be one for which there is no kernel.
    """
    parted = single_lists.parted(decision)
    single_lists.take_apart(parted)
    if not parted:
        writes = any(map(decision.accepted, decision.model.candidates))
        attempts.now().reinplaced(writes=writes)
        if differs_for_speed(decision):
            attempts.now().might("speed")
    return not parted


def _store_early(graph: Graph) -> None:
    """Let inputs be written before the end, where that is tried."""
    if places := epilogues.early(graph):
        attempts.now().might("stores early")
        if "stores early" in attempts.now().changes:
            for epilogue, place in places.items():
                place.append(epilogue)


def delay_buffers(graph: Graph) -> None:
    """Make buffers of nothing right before they are used: until then what runs has their memory.

    Nothing is read to make one and nobody sees when it is made. Inductor keeps the order of the graph, in
    which functionalization puts them before what fills them is computed, and constants stand first.
    """
    order = {node: i for i, node in enumerate(graph.nodes)}
    for node in reversed(order):
        if node.op == "call_function" and is_factory(node) and node.users and not _reads(node):
            min(node.users, key=order.__getitem__).prepend(node)


def _reads(node: Node) -> bool:
    """Return whether a node takes tensors, of which sizes alone may be wanted."""
    return any(tensors(operand.meta.get("val")) for operand in node.all_input_nodes)


def call_kernels(graph: Graph) -> None:
    """Let Inductor call the kernels of operators that write in place where it knows nothing better.

    By itself it refuses those that it also has a decomposition of (``index_add_``), and in a backward graph
    gives the others contiguous copies: what is written into a copy is lost.
    """
    if not defended("refused-kernel"):
        return
    called = {id(n.target): n.target for n in graph.nodes if n.op == "call_function"}  # hashing one is slow
    for op in filter(is_operator, called.values()):
        schema = schema_of(op)
        if schema.name.startswith("aten::") and schema.mutable:
            call_kernel_of(op)


def _mutates_in_regions(graph: Graph) -> bool:
    """Return whether a nested region (a higher-order operator) writes its operands.

    Inductor's scheduler does not order a clone before such a region, so these wrappers must be decided
    and written in place by Inductor itself, and with them their graph.
    """
    region = _torch.higher_order_operator()
    wrappers = calls_of(graph, "auto_functionalized_v2")
    writes = any(isinstance(op, region) for node in wrappers for op in node.args[:1])
    return writes and defended("region-that-writes")


def clone_all(graph: Graph) -> None:
    """Tell Inductor to clone every tensor of the wrappers that are left.

    Without the mark torch 2.11 clones nothing and computes wrong values. A wrapper is known by its own name
    here, since this is what is done where torch's name for it was not found.
    """
    for node in graph.nodes if defended("unmarked-wrapper") else ():
        if node.op != "call_function" or "only_clone_these_tensors" in node.meta:
            continue
        name = getattr(node.target, "__name__", None)
        if name == "auto_functionalized":
            names = schema_of(node.args[0]).mutable if node.args and is_operator(node.args[0]) else ()
            node.meta["only_clone_these_tensors"] = [n for n in names if node.kwargs.get(n) is not None]
        elif name == "auto_functionalized_v2":
            bases = node.kwargs.get("_all_bases")
            count = len(bases) if isinstance(bases, list | tuple) else 0
            node.meta["only_clone_these_tensors"] = list(range(count))


# Inductor's own reinplacing, which would treat our graph as a functional one; and two stages of torch 2.15
# that run between, on the ground that nothing is written yet: one writes pieces into an empty buffer, the
# other drops the second wait of two that name the same value, which two collectives in place do.
_SWITCHED_OFF = (
    *("reinplace_inplaceable_ops", "fix_auto_functionalized_dtype_views"),
    *("slice_scatter_chunking", "deduplicate_wait_tensors"),
)


# Rules of Inductor's that have a setting of their own: ours do all that they do.
_SWITCHED_BY_NAME = {"optimize_scatter_upon_const_tensor": False, "reorder_for_locality": False}


def _disabled(stage: Stage) -> str:
    no_ops = ("remove_noop_ops",) if drops_no_ops() else ()
    return ",".join(
        (*_SWITCHED_OFF, *no_ops, *(("move_constructors_to_cuda",) if stage == "post_grad" else ()))
    )


def inductor_options(
    *,
    policy: Policy = "memory",
    order: Ordering = "free",
    require: Iterable[str] | None = None,
    stage: Stage = "reinplace",
) -> dict[str, Any]:
    """Return options for ``torch.compile(..., options=...)`` that put our passes inside Inductor.

    Stages that run later and would treat our graph as a functional one, Inductor's own reinplacing among
    them, are switched off by name. All keys are public configuration and part of Inductor's cache key.

    Args:
        policy: as for ``pytest_reinplace.passes.reinplace``.
        order: as for ``pytest_reinplace.passes.reinplace``.
        require: names of candidates that must be in place, as in ``Outcome.bears``: a graph that copies one
            of them does not compile, ``NotReinplaced`` says why. Graphs without such a candidate compile;
            where no operator is called so, ``UnknownName`` does.
        stage: how much of Inductor's post-grad stage is ours: reinplacing and the removal of no-ops
            (``"reinplace"``), or also the rules of ``pytest_reinplace.passes.post_grad``, in the place of
            rules of Inductor's that compute something else (``"post_grad"``).

    Raises:
        ReinplaceError: an option has another value.
        TypeError, ValueError: ``require`` is no list of names.
    """
    rules = (
        {"post_grad_custom_pre_pass": RulesPass(order=order), **_SWITCHED_BY_NAME}
        if stage == "post_grad"
        else {}
    )
    return {
        "pre_grad_custom_pass": NotePass(),
        "joint_custom_pre_pass": ProtectPass(stage=stage),
        "joint_custom_post_pass": ProtectPass(stage=stage, is_last=True),
        **rules,
        "post_grad_custom_post_pass": ReinplacePass(policy=policy, order=order, require=require),
        "disabled_passes": _disabled(stage),
        schedule.BEFORE_FUSION: behind(FusionVeto, schedule.hook(schedule.BEFORE_FUSION)),
        schedule.AFTER_FUSION: behind(check.ScheduleCheck, schedule.hook(schedule.AFTER_FUSION)),
    }
