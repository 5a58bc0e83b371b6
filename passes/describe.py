"""From a decision to the report that people read."""

from __future__ import annotations

from collections.abc import Iterator

from torch.fx import Node

from .candidate import Candidate, Kind
from .decide import Decision, Refusal
from .place import Storage, Write
from .reason import Reason
from .report import Blocker, Outcome, Report
from .schema import target_name
from .source import where


def describe(decision: Decision) -> Report:
    """Return one outcome per candidate, in graph order."""
    model = decision.model
    found: list[tuple[int, Outcome]] = []
    for candidate in model.candidates:
        found.extend((candidate.time, o) for o in _outcomes(decision, candidate))
    for index, name, node in decision.copied:
        found.append((model.candidates[index].time, _copied(decision, index, name, node)))
    for node, labels, nbytes in model.unsupported:
        for i, (op, arg) in enumerate(labels):
            refusal = Refusal(Reason.UNSUPPORTED)
            found.append((model.order[node], _outcome(op, arg, node, 0 if i else nbytes, refusal)))
    for write, refusal in _epilogues(decision):
        size = model.nbytes(write.place.region)
        found.append((write.time, _outcome("aten::copy_", "self", write.node, size, refusal)))
    for node, nbytes in decision.returned.items():
        refusal = Refusal(Reason.ESCAPES, (node,))
        time = max(model.order.values())
        found.append((time, _outcome("output", node.name, node, nbytes, refusal)))
    return Report(tuple(outcome for _, outcome in sorted(found, key=lambda pair: pair[0])))


def _outcomes(decision: Decision, candidate: Candidate) -> Iterator[Outcome]:
    refusal = decision.refused.get(candidate.index)
    if candidate.kind is Kind.COPY and refusal is None:
        return  # an artefact of functionalization that is gone: nothing that the user wrote
    for i, (op, arg) in enumerate(candidate.labels):
        # Arguments that are views of one base share one copy: its bytes count once.
        moved = () if refusal else decision.model.unlocks.get((candidate.node, candidate.slot), ())
        yield _outcome(op, arg, candidate.node, 0 if i else candidate.nbytes, refusal, moved)


def _outcome(
    op: str, arg: str, node: Node, nbytes: int, refusal: Refusal | None, moved: tuple[Node, ...] = ()
) -> Outcome:
    return Outcome(
        label=f"{op}.{arg}",
        op=op,
        arg=arg,
        node=node.name,
        reinplaced=refusal is None,
        nbytes=nbytes,
        reason=refusal.reason if refusal else None,
        blockers=tuple(map(blocker, refusal.blockers)) if refusal else (),
        source=where(node),
        hint=refusal.reason.hint if refusal else "",
        moved=tuple(map(blocker, moved)),
    )


def blocker(node: Node) -> Blocker:
    """Return a node as reports name it."""
    if node.op != "call_function":
        return Blocker(node.name, node.op, where(node))
    return Blocker(node.name, target_name(node.target), where(node))


def _copied(decision: Decision, index: int, name: str, node: Node) -> Outcome:
    candidate, model = decision.model.candidates[index], decision.model
    place = model.place(node)
    size = model.nbytes(place.region) if place else 0
    return _outcome(
        candidate.labels[0][0], name, candidate.node, size, Refusal(Reason.SAME_NODE, (candidate.node,))
    )


def _epilogues(decision: Decision) -> Iterator[tuple[Write, Refusal]]:
    """Yield the epilogue copies that stayed although their value comes from the input's own bytes."""
    made_by = decision.model.made_by
    for writes in decision.model.writes.values():
        for write in writes:
            if write.node in decision.erased:
                continue
            refusal = _refusal_on_the_way(decision, made_by, write)
            if refusal is not None:
                yield write, refusal


def _refusal_on_the_way(
    decision: Decision, made_by: dict[Storage, Candidate], write: Write
) -> Refusal | None:
    """Return why a value did not stay in the input; ``None`` when it never came from there."""
    storage, refusal = write.source.storage, None
    while storage in made_by and storage is not write.place.storage:
        candidate = made_by[storage]
        refusal = decision.refused.get(candidate.index, refusal)
        storage = candidate.operand.storage
    same = decision.model.same_value(write.source, write.place)
    return refusal if storage is write.place.storage and same else None
