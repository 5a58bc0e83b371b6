"""What helps against a clone, or that it is needed: said where the decision shows it."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.fx import Node

from ..ops.schema import is_operator
from ..ops.wrapper_names import wraps_operator
from ..reason import Reason, listing
from .facts.candidate import Candidate, Refusal, Snapshot
from .facts.decision import Decision
from .taken import Taken

_FEW = 2000
_BOTH = "the old value and the new one are both needed: if that is meant, "
_COPIED = "the program copies it here and needs both: if that is meant, "


class Hints:
    """The hints of one graph.

    Whether a reader needs what is written is searched for. All searches together look at no more nodes than
    there are, and a few, so that a graph of many clones costs no square; then the plain hint is given.

    Args:
        decision: what was decided.
    """

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.taken: Taken = Taken(decision)
        self._left = _FEW + len(decision.model.order)

    def of(self, candidate: Candidate, refusal: Refusal, label: str) -> str:
        """Return the hint of a clone; empty where nothing is known to help.

        Args:
            candidate: what is cloned.
            refusal: why.
            label: its label, or that of a copy which is made instead.
        """
        line, plain = listing([label]), refusal.reason.hint
        says = _OF_REASON.get(refusal.reason)
        if says is not None:
            return says(self, candidate, refusal, line)
        match refusal.reason:
            case Reason.INPUT_KEPT:
                return f"{plain}; if the caller needs the old value, {line}"
            case Reason.ESCAPES | Reason.SAVED:
                return self.taken.hint(line, saved=refusal.reason is Reason.SAVED)
            case Reason.LAYOUT if candidate.kind.is_copy:
                return ""
            case Reason.UNKNOWN_OP if not all(is_operator(node.target) for node in refusal.blockers):
                return "declare what it reads and writes: pytest_reinplace.passes.declare"
        return plain

    def of_kept(self, snapshot: Snapshot, label: str) -> str:
        """Return the hint of a copy that keeps an old value, or a result, for its readers."""
        if all(node.op == "output" for node in snapshot.readers) and self.taken.is_saved(snapshot.operand):
            return self.taken.hint(listing([label]), saved=True)
        if self.is_needed(snapshot.readers, snapshot.before):
            return _BOTH + listing([label])
        return kept_for(snapshot, self.decision).hint

    def may_look_at(self, count: int) -> bool:
        """Return whether so many more nodes may be looked at, and count them."""
        self._left -= count
        return self._left >= 0

    def is_needed(self, readers: Iterable[Node], write: Node) -> bool:
        """Return whether a reader of the old value needs what is written, too, or the caller gets both."""
        order = self.decision.model.order
        time, pending, seen = order[write], list(readers), set[Node]()
        while pending and self.may_look_at(1):
            node = pending.pop()
            if node is write:
                return True
            if node not in seen and order[node] > time:
                seen.add(node)
                pending.extend(node.all_input_nodes)
        return False


def kept_for(snapshot: Snapshot, decision: Decision) -> Reason:
    """Return why a copy is kept: of an old value, or of a result that is overwritten later."""
    node = decision.model.candidates[snapshot.candidate].node
    return Reason.STILL_READ if snapshot.before is node else Reason.CLOBBERED


def _still_read(hints: Hints, candidate: Candidate, refusal: Refusal, line: str) -> str:
    by_output = all(node.op == "output" for node in refusal.blockers)
    if by_output and hints.taken.reads_for_backward(candidate):
        return hints.taken.hint(line, saved=True)
    needed = hints.is_needed(refusal.blockers, candidate.node)
    return _BOTH + line if needed else Reason.STILL_READ.hint


def _overwritten(hints: Hints, candidate: Candidate, refusal: Refusal, line: str) -> str:
    writer = next(iter(refusal.blockers), None)
    if writer is None:
        return ""
    model, both = hints.decision.model, (candidate.result, candidate.operand.storage)
    time = model.order[writer]
    if not hints.may_look_at(sum(len(model.reads[s]) for s in both)):
        return Reason.OVERWRITTEN.hint
    readers = [r for s in both for r in model.reads[s] if r.time > time and r.node is not writer]
    of_result = [r.node for r in readers if r.place.storage is candidate.result]
    if all(node.op == "output" for node in of_result) and hints.taken.is_for_backward(candidate):
        return hints.taken.hint(line, saved=True)
    # Who looks at an input after the call sees what is written back.
    last = (r for r in readers if r.is_exit)
    is_kept = any(all(w.time < time for w in model.writes.get(r.place.storage, ())) for r in last)
    inside = (r.node for r in readers if not r.is_exit)
    if is_kept or hints.is_needed(inside, writer):
        return (_COPIED if candidate.kind.is_clone else _BOTH) + line
    return Reason.OVERWRITTEN.hint


def _clobbered(hints: Hints, candidate: Candidate, refusal: Refusal, line: str) -> str:
    if all(node.op != "output" for node in refusal.blockers):
        return Reason.CLOBBERED.hint
    if hints.taken.is_for_backward(candidate):
        return hints.taken.hint(line, saved=True)
    return f"the result is returned, and the input is written again: if that is meant, {line}"


def _same_node(hints: Hints, candidate: Candidate, refusal: Refusal, line: str) -> str:
    siblings = {
        c.operand_node for c in hints.decision.model.candidates_of[candidate.node] if c is not candidate
    }
    if wraps_operator(candidate.node.target) and siblings.isdisjoint(refusal.blockers):
        return f"{Reason.SAME_NODE.hint}; if not, {line}"
    return f"the call needs the old value while it writes: if that is meant, {line}"


def _lowering(hints: Hints, candidate: Candidate, refusal: Refusal, line: str) -> str:
    decision = hints.decision
    root = decision.root(candidate.operand.storage)
    converts = decision.model.dtype_of(root) != candidate.operand.value.dtype
    views = any(node.target is torch.ops.aten.view.dtype for node in refusal.blockers)
    return Reason.LOWERING.hint if converts or views else ""


_OF_REASON = {
    Reason.STILL_READ: _still_read,
    Reason.SAME_NODE: _same_node,
    Reason.CLOBBERED: _clobbered,
    Reason.OVERWRITTEN: _overwritten,
    Reason.LOWERING: _lowering,
}
