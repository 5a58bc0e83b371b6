"""The conditions of legality: whether a candidate may be written in place, as far as decided.

A candidate at time ``t`` writes bytes of a buffer (a root storage and all that was accepted into it). It is
legal iff only dead bytes are written:

1. no value of the buffer whose bytes are written is read after ``t``, unless a real write into it
   replaces them first;
2. no other operand of the same call lies in the written bytes;
3. no later real write into the buffer hits bytes of the result that are still read;
4. no collective is using the bytes (its reads last until the wait, so condition 1 sees it);
5. the result does not come to share storage with an input or another output (``escape.py``).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable

from torch.fx import Node

from ...memory.geometry import Geometry, clipped
from ...memory.region import Region
from ...reason import Reason
from ..facts import price
from ..facts.candidate import Candidate, Refusal
from ..facts.decision import Decision
from ..facts.place import SEEN, Place, Read, Storage, Write
from . import part_copy
from .no_change import is_unchanged, lies_there
from .old_value import snapshots
from .own_element import is_own_element, is_passed_twice

_EXPLAINED = 64  # readers that a refusal looks at: more would not be read by anybody
_SEEN, _EXPLAINED_LATER = 4096, 4  # fewer, once so many were looked at


def judge(decision: Decision, candidate: Candidate) -> Refusal | None:
    """Return why a candidate must be cloned, ``None`` when it may be written in place."""
    operand, result = candidate.operand.storage, candidate.result
    if candidate.index in decision.early:
        reason = Reason.OVERWRITTEN if candidate.kind.is_copy else Reason.CHEAPER
        return Refusal(reason, (decision.early[candidate.index],))
    if candidate.obstacle is not None:
        return Refusal(candidate.obstacle)
    for storage in (result, operand):  # nothing was accepted into a sealed root
        if storage.sealed is not None:
            return Refusal(storage.sealed, (storage.seal,) if storage.seal is not None else ())
    unseen = decision.model.unseen.get(candidate.operand_node, SEEN)
    view = unseen.of_input if decision.root(operand).is_input else unseen.computed
    if view is not None:
        return Refusal(Reason.LOWERING, (view,))
    refusal = decision.model.target.refusal(decision, candidate)
    if refusal is not None:
        return refusal
    if not decision.is_laid_out(operand):
        return Refusal(Reason.LAYOUT)
    if candidate.kind.stores_source and lies_there(decision, candidate):
        decision.already_there.add(candidate.index)
        return _clobbered(decision, candidate)
    made, assumed = len(decision.snapshots), len(decision.assumed)
    refusal = (
        _still_read(decision, candidate) or _clobbered(decision, candidate) or _same_node(decision, candidate)
    )
    if refusal is not None:
        decision.forget_snapshots(made)
        del decision.assumed[assumed:]
    return refusal


def _meets(decision: Decision, region: Region, other: Region) -> bool:
    return decision.model.geometry.overlap(region, other) is not False


def _still_read(decision: Decision, candidate: Candidate) -> Refusal | None:
    """Condition 1: every pending read of the written bytes must be served before the write."""
    hits: dict[Read, None] = {}
    limit = _EXPLAINED if decision.seen < _SEEN else _EXPLAINED_LATER
    for written in candidate.writes:
        for read in decision.near(candidate.operand.storage, written, candidate.time):
            if read not in hits and _hits(decision, candidate, read, written):
                hits[read] = None
                if len(hits) == limit:
                    break
    if not hits:
        return None
    decision.seen += len(hits)
    storages = {r.place.storage for r in hits}
    culprits = frozenset.intersection(*(_between(decision, candidate, s) for s in storages))
    if len(hits) < limit and _spared(decision, candidate, hits, culprits, candidate.node):
        return None
    kept = [r for r in hits if not r.is_exit]
    ordered = sorted(kept or hits, key=operator.attrgetter("time"))
    first = ordered[0]
    reason = Reason.STILL_READ if kept else Reason.INPUT_KEPT
    if first.in_flight:
        reason = Reason.IN_FLIGHT
    elif not _is_sure(decision, first.place, candidate.writes):
        reason = Reason.UNKNOWN_OVERLAP
    nodes = tuple(dict.fromkeys([r.node for r in ordered]))
    return Refusal(reason, nodes, culprits)


def _spared(
    decision: Decision,
    candidate: Candidate,
    hits: dict[Read, None],
    culprits: frozenset[int],
    before: Node,
) -> bool:
    """Serve the readers by copies of what they read, made before a node, where that is less than a clone."""
    if any(read in decision.served for read in hits):
        return False  # a copy that is made later, and too late for this one
    made = snapshots(decision, candidate, hits, before)
    if made is None:
        return False
    if price.of_copies(made) >= price.of_cheapest_refusal(decision, candidate, culprits):
        return False
    decision.snapshots.extend(made)
    decision.instead.update(dict.fromkeys(culprits))
    decision.early.update((s.early, candidate.node) for s in made if s.early is not None)
    decision.served.update(dict.fromkeys(hits, decision.model.order[before]))
    return True


def _is_sure(decision: Decision, place: Place, writes: Iterable[Region]) -> bool:
    return any(decision.model.geometry.overlap(place.region, w) for w in writes)


def _hits(decision: Decision, candidate: Candidate, read: Read, written: Region) -> bool:
    geometry = decision.model.geometry
    if read.node is candidate.node or (decision.served and decision.is_copied(read, candidate.time)):
        return False  # its own operands are looked at by _same_node
    if not decision.meets(read.place.region, written):
        return False
    if _is_beside(decision, read, written):
        return False
    if read.hole is not None:
        part = clipped(geometry, written, read.place.region)
        if part != written and _is_beside(decision, read, part):
            return False
    # A real write into the class that is read, before it is read, makes the old bytes irrelevant:
    # what the reader expects is then the written value, which its own reads protect.
    writes = decision.model.writes.get(read.place.storage)
    return not writes or not any(
        candidate.time < w.time < read.time
        and (
            geometry.contains(w.place.region, written) or geometry.contains(w.place.region, read.place.region)
        )
        for w in writes
    )


def _spares(geometry: Geometry, read: Read, region: Region) -> bool:
    """Return whether a read does not look at bytes of a region, because what it reads has a hole."""
    assert read.hole is not None
    return geometry.contains(read.hole, region) or geometry.contains(read.hole, read.place.region)


def _is_beside(decision: Decision, read: Read, region: Region) -> bool:
    """Return whether nobody looks at bytes of a region by a read, or where it hands them on."""
    if read.hole is not None and _spares(decision.model.geometry, read, region):
        return True
    return read.into is not None and not decision.model.is_needed(read.into, region)


def _between(decision: Decision, candidate: Candidate, storage: Storage) -> frozenset[int]:
    """Return the accepted candidates that join a reader's storage with a candidate's operand."""
    mine = {c.index for c in decision.path(candidate.operand.storage)}
    return frozenset(mine ^ {c.index for c in decision.path(storage)})


def _clobbered(decision: Decision, candidate: Candidate) -> Refusal | None:
    """Condition 3: a later ``copy_`` into the buffer must not destroy the result while it is needed."""
    result = candidate.result
    for write in decision.model.writes.get(decision.root(candidate.operand.storage), ()):
        if write.time <= candidate.time:
            continue
        in_place = write.is_own
        if (
            not in_place
            and write.source.storage is result
            and _meets(decision, write.source.region, write.place.region)
        ):
            # A copy whose source overlaps its destination is undefined.
            return Refusal(Reason.CLOBBERED, (write.node,), _up(decision, candidate))
        hits = _destroyed(decision, candidate, write, in_place)
        if not hits:
            continue
        if _may_be_identity(decision, candidate, write):
            decision.assumed.append((candidate, write, next(iter(hits)).node))
            continue
        up = _up(decision, candidate)
        if len(hits) >= _EXPLAINED or not _spared(decision, candidate, hits, up, write.node):
            return Refusal(Reason.CLOBBERED, (write.node, next(iter(hits)).node), up)
    return None


def _destroyed(decision: Decision, candidate: Candidate, write: Write, in_place: bool) -> dict[Read, None]:
    """Return some of the later reads of a result that a real write would destroy."""
    hits: dict[Read, None] = {}
    for read in decision.model.reads[candidate.result]:
        if read.time <= write.time or not _meets(decision, read.place.region, write.place.region):
            continue
        if decision.is_copied(read, write.time):
            continue
        if read.hole is not None and _spares(decision.model.geometry, read, write.place.region):
            continue
        if in_place and is_unchanged(decision, write.source.storage, read.place):
            continue
        hits[read] = None
        if len(hits) == _EXPLAINED:
            break
    return hits


def _may_be_identity(decision: Decision, candidate: Candidate, write: Write) -> bool:
    """Return whether a later write copies bytes onto themselves, or will if all goes well from here on.

    What is written then lies there already, whole until the copy read it: nothing is overwritten.
    """
    if decision.is_identity(write):
        return True
    model, storage = decision.model, write.source.storage
    root = decision.root(candidate.operand.storage)
    if model.trees[storage] is not model.trees[root] or not write.is_own:
        return False
    while storage in model.made_by:
        maker = model.made_by[storage]
        if maker.time > candidate.time:
            return True
        storage = maker.operand.storage
    return False


def broken(decision: Decision) -> dict[int, Refusal]:
    """Return the candidates whose results a write overwrites that was expected to turn into an identity."""
    return {
        candidate.index: Refusal(Reason.CLOBBERED, (write.node, reader), _up(decision, candidate))
        for candidate, write, reader in decision.assumed
        if not decision.is_identity(write)
    }


def _up(decision: Decision, candidate: Candidate) -> frozenset[int]:
    return frozenset(c.index for c in decision.path(candidate.operand.storage))


def _same_node(decision: Decision, candidate: Candidate) -> Refusal | None:
    """Condition 2: the call must not see its own write through another operand."""
    root = decision.root(candidate.operand.storage)
    for other in decision.model.candidates_of[candidate.node]:
        if (
            other is candidate
            or other.result not in decision.edge
            or decision.root(other.operand.storage) is not root
        ):
            continue
        # Each was cloned on its own: neither may see the other's write, now or in its result later.
        later = (r.place.region for r in decision.model.reads[candidate.result])
        pairs = ((other, (*candidate.writes, *later)), (candidate, other.writes))
        if any(_meets(decision, a, b) for writer, seen in pairs for a in writer.writes for b in seen):
            apart = _between(decision, candidate, other.operand.storage)
            return Refusal(Reason.SAME_NODE, (other.operand_node,), apart | {other.index})
    user = _user_in_place(decision, candidate)
    if user is not None:
        return Refusal(Reason.SAME_NODE, (user.operand_node,), frozenset({user.index}))
    hits = [
        (name, node, place)
        for name, node, place in candidate.others
        if decision.root(place.storage) is root
        and not decision.is_served(candidate.node, node)
        and not is_own_element(decision.model, candidate, place)
        and not is_passed_twice(candidate, name)
        and (
            any(_meets(decision, place.region, w) for w in candidate.writes)
            or _is_refused(decision, candidate, place)
        )
    ]
    if not hits:
        return None
    culprits = frozenset.intersection(*(_between(decision, candidate, p.storage) for _, _, p in hits))
    if _make_room(decision, candidate, hits, culprits):
        return None
    return Refusal(Reason.SAME_NODE, tuple(dict.fromkeys(n for _, n, _ in hits)), culprits)


def _is_refused(decision: Decision, candidate: Candidate, place: Place) -> bool:
    """Return whether torch refuses an operand beside itself, of which it says so even without elements."""
    is_same = candidate.kind.by_form and place.region == candidate.operand.region
    return is_same and decision.model.geometry.axes(place.region).empty


def _user_in_place(decision: Decision, candidate: Candidate) -> Candidate | None:
    """Return another element of a list, in place as well, that one of the two would be overwritten for."""
    for other in decision.model.candidates_of[candidate.node]:
        if other is candidate or other.result not in decision.edge:
            continue
        for writer, reader in ((candidate, other), (other, candidate)):
            root = decision.root(writer.operand.storage)
            read = (p.region for p in reader.used if decision.root(p.storage) is root)
            if any(_meets(decision, region, w) for region in read for w in writer.writes):
                return other
    return None


def _make_room(
    decision: Decision,
    candidate: Candidate,
    hits: list[tuple[str, Node, Place]],
    culprits: frozenset[int],
) -> bool:
    """Copy the overlapping operands, or the parts that are written, where that is less than the candidate."""
    model = decision.model
    shared = decision.kept_for(candidate)
    copies = price.of_operands(model, {n: place for _, n, place in hits if n not in shared}.values())
    parts = part_copy.parts(decision, candidate, [(node, place) for _, node, place in hits])
    if parts is not None and price.of_copies(parts) < min(copies, price.of_copy(candidate.nbytes)):
        decision.part_copies[candidate.index] = parts
        decision.instead.update(dict.fromkeys(culprits))
        return True
    refusal = price.of_cheapest_refusal(decision, candidate, culprits)
    # A copy of an operand is made and read; a clone that a scatter puts back later is moved once more.
    if copies > refusal or (copies == refusal and not _is_scattered(decision, candidate)):
        return False
    decision.instead.update(dict.fromkeys(culprits))
    decision.copied.extend(
        (candidate.index, name, node) for node, name in {node: name for name, node, _ in hits}.items()
    )
    return True


def _is_scattered(decision: Decision, candidate: Candidate) -> bool:
    """Return whether a view scatter puts a result back into a part of something, or of an input."""
    model = decision.model
    made = (c for r in model.reads[candidate.result] for c in model.candidates_of.get(r.node, ()))
    return any(
        c.kind.stores_source
        and c.others[0][2].storage is candidate.result
        and (
            not model.geometry.contains(c.writes[0], c.operand.region)
            or c.index in model.written_back
            or _is_scattered(decision, c)
        )
        for c in made
    )
