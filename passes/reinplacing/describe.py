"""From a decision to the report that people read."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch.fx import Node

from ..ops.schema import arguments, is_operator, target_name
from ..ops.source import where
from ..ops.wrapper import base_views, called
from ..reason import Reason, listing
from ..report import Blocker, Other, Outcome, Report
from .facts import price
from .facts.candidate import Candidate, Refusal, Snapshot
from .facts.decision import Decision
from .facts.place import Storage, Write
from .hint import Hints, kept_for

# What is saved for the backward, as an argument of the output: its own name is torch's, and changes with it.
_SAVED = "saved"
Known = Callable[[Node], Blocker]  # how reports name a node


def describe(decision: Decision, inside: Mapping[Node, tuple[Outcome, ...]] | None = None) -> Report:
    """Return one outcome per candidate, in graph order; those ``inside`` a call stand before its own."""
    model = decision.model
    known, hints = functools.cache(blocker), Hints(decision)  # many candidates share their blockers
    found = [(model.order[node], o) for node, outcomes in (inside or {}).items() for o in outcomes]
    for _, siblings in itertools.groupby(model.candidates, key=lambda c: c.node):
        mine = [(c, o) for c in siblings for o in _outcomes(hints, c, known)]
        if len(mine) > 1 and mine[0][0].kind.of_bases:  # by argument, not by base
            order = {view.label: i for i, view in enumerate(base_views(mine[0][0].node))}
            mine.sort(key=lambda pair: order.get(pair[1].arg, len(order)))
        found += [(c.time, o) for c, o in mine]
    for index, name, node in decision.own_copies:
        found.append((model.candidates[index].time, _copied(hints, index, name, node)))
    for snapshot in (s for s in decision.snapshots if s.early is None):
        found.append((model.order[snapshot.before], _kept(hints, snapshot)))
    unsupported = Refusal(Reason.UNSUPPORTED)
    for node, labels, nbytes in model.unsupported:
        for i, (op, arg) in enumerate(labels):
            allocates = nbytes == 0 and is_operator(node.target)
            left = _outcome(op, arg, node, 0 if i else nbytes, unsupported, allocates=allocates)
            found.append((model.order[node], left))
    for write, candidate in _epilogues(decision):
        size, refusal = price.of_region(model, write.place.region), decision.refused[candidate.index]
        others = {}
        if not candidate.allocates:  # which nobody is told of
            refusal, others = Refusal(Reason.FOLLOWS), {"follows": candidate}
        left = _outcome("aten::copy_", "self", write.node, size, refusal, known, others)
        found.append((write.time, left))
    found += [(len(model.order), _returned(hints, *pair)) for pair in decision.returned.items()]
    return Report(tuple(outcome for _, outcome in sorted(found, key=lambda pair: pair[0]))).listed()


def _outcomes(hints: Hints, candidate: Candidate, known: Known) -> Iterator[Outcome]:
    decision = hints.decision
    refusal = decision.refused.get(candidate.index)
    if refusal and refusal.reason is Reason.ESCAPES and hints.taken.shares_for_backward(candidate):
        refusal = Refusal(Reason.SAVED, refusal.blockers)
    if candidate.kind.is_copy and not candidate.kind.is_clone and refusal is None:
        return  # an artefact of functionalization that is gone: nothing that the user wrote
    fused = candidate.index in decision.model.fused
    if fused:
        refusal = None
    if candidate.allocates and refusal is not None:
        return  # an ordinary functional operator: nothing is copied
    for i, (op, arg) in enumerate(candidate.labels):
        # Arguments that are views of one base share one copy: its bytes count once.
        part = next((p for p in decision.part_copies.get(candidate.index, ()) if p.view == i), None)
        if part is not None:
            held = Refusal(Reason.SAME_NODE, part.blockers)
            told = hints.of(candidate, held, f"{op}.{arg}")
            yield _outcome(op, arg, candidate.node, part.nbytes, held, known, hint=told)
            continue
        moved = () if refusal else decision.model.unlocks.get((candidate.node, candidate.slot), ())
        size = 0 if i else candidate.nbytes + candidate.fresh
        flags = {"fused": fused, "allocates": candidate.allocates}
        hint = hints.of(candidate, refusal, f"{op}.{arg}") if refusal else None
        others = {"copies": hints.taken.whole(candidate.operand) if refusal else None}
        yield _outcome(op, arg, candidate.node, size, refusal, known, others, hint=hint, moved=moved, **flags)


def _outcome(
    op: str,
    arg: str,
    node: Node,
    nbytes: int,
    refusal: Refusal | None,
    known: Known | None = None,
    others: Mapping[str, Candidate | None] | None = None,
    *,
    hint: str | None = None,
    moved: tuple[Node, ...] = (),
    **flags: Any,
) -> Outcome:
    known = known or blocker
    if hint is None:
        hint = refusal.reason.hint if refusal else ""
    named: dict[str, Any] = {name: _named(one) for name, one in (others or {}).items() if one is not None}
    return Outcome(
        label=f"{op}.{arg}",
        op=op,
        arg=arg,
        node=node.name,
        reinplaced=refusal is None,
        nbytes=nbytes,
        reason=refusal.reason if refusal else None,
        blockers=tuple(map(known, refusal.blockers)) if refusal else (),
        source=where(node),
        hint=hint,
        moved=tuple(map(known, moved)),
        graph="",
        **named,
        **flags,
    )


def blocker(node: Node) -> Blocker:
    """Return a node as reports name it."""
    if node.op != "call_function":
        return Blocker(node.name, node.op, where(node))
    return Blocker(node.name, called(node), where(node))


def _copied(hints: Hints, index: int, name: str, node: Node) -> Outcome:
    model = hints.decision.model
    candidate = model.candidates[index]
    size = price.of_value(model, node)
    refusal, op = Refusal(Reason.SAME_NODE, (candidate.node,)), candidate.labels[0][0]
    hint, others = hints.of(candidate, refusal, f"{op}.{name}"), {"spares": candidate}
    return _outcome(op, name, candidate.node, size, refusal, None, others, hint=hint, added=True)


def _kept(hints: Hints, snapshot: Snapshot) -> Outcome:
    """Return the outcome of a copy that keeps an old value, or a result, for its readers."""
    candidate, reader = hints.decision.model.candidates[snapshot.candidate], snapshot.readers[0]
    op, arg = "output", snapshot.operand.name
    if reader.op != "output":
        op = target_name(reader.target)
        named = arguments(reader) if is_operator(reader.target) else reader.kwargs.items()
        arg = next((name for name, value in named if value is snapshot.operand), arg)
    elif hints.taken.is_saved(snapshot.operand):
        arg = _SAVED
    reason = kept_for(snapshot, hints.decision)
    writes = () if reason is Reason.STILL_READ else (snapshot.before,)
    refusal = Refusal(reason, (*snapshot.readers, *writes))
    hint, copied = hints.of_kept(snapshot, f"{op}.{arg}"), hints.decision.model.place(snapshot.operand)
    others = {"spares": candidate, "copies": hints.taken.whole(copied)}
    return _outcome(op, arg, candidate.node, snapshot.nbytes, refusal, None, others, hint=hint, added=True)


def _returned(hints: Hints, node: Node, nbytes: int) -> Outcome:
    """Return the outcome of an output that is a copy so that it shares storage with nothing."""
    model, saved = hints.decision.model, hints.taken.is_saved(node)
    arg = _SAVED if saved else node.name
    refusal = Refusal(Reason.SAVED if saved else Reason.ESCAPES, (node,))
    hint = hints.taken.hint(listing([f"output.{arg}"]), saved=saved)
    place = next(p for n, p in model.outputs if n is node)
    others = {"spares": model.made_by.get(place.storage), "copies": hints.taken.whole(place)}
    return _outcome("output", arg, node, nbytes, refusal, None, others, hint=hint, added=True)


def _named(candidate: Candidate) -> Other:
    op, arg = candidate.labels[0]
    return Other(candidate.node.name, f"{op}.{arg}", where(candidate.node))


def _epilogues(decision: Decision) -> Iterator[tuple[Write, Candidate]]:
    """Yield the epilogue copies that stayed although their value comes from the input's bytes, and why."""
    made_by = decision.model.made_by
    for writes in decision.model.writes.values():
        for write in writes:
            if write.node in decision.erased:
                continue
            refused = _refused_on_the_way(decision, made_by, write)
            if refused is not None:
                yield write, refused


def _refused_on_the_way(
    decision: Decision, made_by: dict[Storage, Candidate], write: Write
) -> Candidate | None:
    """Return the clone by which a value did not stay in the input; ``None`` when it never came from there."""
    storage, refused = write.source.storage, None
    while storage in made_by and storage is not write.place.storage:
        candidate = made_by[storage]
        if candidate.index in decision.refused:
            if candidate.index in decision.model.fused:
                return None  # a kernel that computes it stores it here
            refused = candidate
        storage = candidate.operand.storage
    return refused if storage is write.place.storage and write.is_own else None
