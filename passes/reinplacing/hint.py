"""What helps against a clone, or that it is needed: said where the decision shows it."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.fx import Node

from ..ops.schema import is_operator
from ..ops.wrapper_names import wraps_operator
from ..reason import Reason, listing
from .facts.candidate import Candidate, Snapshot
from .facts.decision import Decision
from .facts.refusal import Refusal

_MOST_NODES = 2000  # that are looked at to find out whether a reader needs what is written
_BOTH = "the old value and the new one are both needed: if that is meant, "
_COPIED = "the program copies it here and needs both: if that is meant, "


def hint_of(decision: Decision, candidate: Candidate, refusal: Refusal, label: str) -> str:
    """Return the hint of a clone; empty where nothing is known to help.

    Args:
        decision: the decision.
        candidate: what is cloned.
        refusal: why.
        label: its label, or that of a copy which is made instead.
    """
    says = _OF_REASON.get(refusal.reason)
    if says is None:
        return refusal.reason.hint
    return says(decision, candidate, refusal, listing([label]))


def kept_hint(decision: Decision, snapshot: Snapshot, label: str) -> str:
    """Return the hint of a copy that keeps an old value for its readers."""
    needed = _is_needed(decision, snapshot.readers, snapshot.before)
    return _BOTH + listing([label]) if needed else Reason.STILL_READ.hint


def _still_read(decision: Decision, candidate: Candidate, refusal: Refusal, line: str) -> str:
    needed = _is_needed(decision, refusal.blockers, candidate.node)
    return _BOTH + line if needed else Reason.STILL_READ.hint


def _overwritten(decision: Decision, candidate: Candidate, refusal: Refusal, line: str) -> str:
    writer = next(iter(refusal.blockers), None)
    if writer is None:
        return ""
    time = decision.model.order[writer]
    both = (candidate.result, candidate.operand.storage)
    readers = [r for s in both for r in decision.model.reads[s] if r.time > time and r.node is not writer]
    # Who looks at an input after the call sees what is written back.
    last = (r for r in readers if r.is_exit)
    is_kept = any(all(w.time < time for w in decision.model.writes.get(r.place.storage, ())) for r in last)
    inside = (r.node for r in readers if not r.is_exit)
    if is_kept or _is_needed(decision, inside, writer):
        return (_COPIED if candidate.kind.is_clone else _BOTH) + line
    return Reason.OVERWRITTEN.hint


def _input_kept(decision: Decision, candidate: Candidate, refusal: Refusal, line: str) -> str:
    return f"{Reason.INPUT_KEPT.hint}; if the caller needs the old value, {line}"


def _clobbered(decision: Decision, candidate: Candidate, refusal: Refusal, line: str) -> str:
    if all(node.op != "output" for node in refusal.blockers):
        return Reason.CLOBBERED.hint
    return f"the result is returned, and the input is written again: if that is meant, {line}"


def _same_node(decision: Decision, candidate: Candidate, refusal: Refusal, line: str) -> str:
    siblings = {c.operand_node for c in decision.model.candidates_of[candidate.node] if c is not candidate}
    if wraps_operator(candidate.node.target) and siblings.isdisjoint(refusal.blockers):
        return f"{Reason.SAME_NODE.hint}; if not, {line}"
    return f"the call needs the old value while it writes: if that is meant, {line}"


def _escapes(decision: Decision, candidate: Candidate, refusal: Refusal, line: str) -> str:
    return f"{Reason.ESCAPES.hint}; if one is meant, {line}"


def _layout(decision: Decision, candidate: Candidate, refusal: Refusal, line: str) -> str:
    return "" if candidate.kind.is_copy else Reason.LAYOUT.hint


def _unknown_op(decision: Decision, candidate: Candidate, refusal: Refusal, line: str) -> str:
    if all(is_operator(node.target) for node in refusal.blockers):
        return Reason.UNKNOWN_OP.hint
    return "declare what it reads, writes and aliases: pytest_reinplace.passes.declare"


def _lowering(decision: Decision, candidate: Candidate, refusal: Refusal, line: str) -> str:
    root = decision.root(candidate.operand.storage)
    converts = decision.model.dtype_of(root) != candidate.operand.value.dtype
    views = any(node.target is torch.ops.aten.view.dtype for node in refusal.blockers)
    return Reason.LOWERING.hint if converts or views else ""


_OF_REASON = {
    Reason.STILL_READ: _still_read,
    Reason.INPUT_KEPT: _input_kept,
    Reason.SAME_NODE: _same_node,
    Reason.CLOBBERED: _clobbered,
    Reason.OVERWRITTEN: _overwritten,
    Reason.ESCAPES: _escapes,
    Reason.LAYOUT: _layout,
    Reason.UNKNOWN_OP: _unknown_op,
    Reason.LOWERING: _lowering,
}


def _is_needed(decision: Decision, readers: Iterable[Node], write: Node) -> bool:
    """Return whether a reader of the old value needs what is written, too, or the caller gets both."""
    order = decision.model.order
    time, pending, seen = order[write], list(readers), set[Node]()
    while pending and len(seen) < _MOST_NODES:
        node = pending.pop()
        if node is write:
            return True
        if node not in seen and order[node] > time:
            seen.add(node)
            pending.extend(node.all_input_nodes)
    return False
