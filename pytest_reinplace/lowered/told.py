"""The memory of a call as text."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.wording import bytes_of, plural
from .allocation import Allocation
from .memory import Gap, Lowered, Memory, Workspace

_MOST = 12


def equation(found: Memory) -> str:
    """Return how a measured peak is made up."""
    head = f"measured peak {bytes_of(found.measured)}"
    most = found.at_peak
    if most is None or most.taken is None:
        parts = [f"{found.outside} B outside of programs"]
    else:
        own, static = most.workspace_at_peak, most.taken.levels[most.peak_at].highest
        parts = [f"{static} B that {most.graph} holds"]
        parts += [f"{most.before} B held before it"] if most.before else []
        parts += [f"{own.nbytes} B that {own.operator} takes for itself"] if own else []
    return f"{head} = {' + '.join(parts)}; unexplained: {found.unexplained} B"


def lower_bound(found: Memory) -> Iterator[str]:
    """Yield the lower bound, what needs it, and how far the peak is from it; nothing where it is 0."""
    most = found.most_needed
    if most is None or most.taken is None or not found.bound:
        return
    need = most.taken.need
    by = f" by {most.graph}: {need.text}" if need.nbytes else f" before {most.graph}"
    own = f"; {most.before} B of that were held before" if need.nbytes and most.before else ""
    yield f"lower bound {bytes_of(found.bound)}{by} (the peak is {found.over_bound:.2f} times that{own})"


def at_peak(found: Memory) -> Iterator[str]:
    """Yield what is held at the peak, the largest first, each with where it comes from."""
    most = found.at_peak
    if most is None or most.taken is None:
        yield from _unknown(found)
        return
    level = most.taken.levels[most.peak_at]
    own, held = most.workspace_at_peak, most.at_peak
    yield f"at the peak {most.graph} runs: {level.text}"
    if own is not None:
        yield f"  {own.nbytes} B inside {own.operator}{_at(own.source)}"
    for one in held[:_MOST]:
        yield f"  {one.nbytes} B {one.name}{_later(one)}{_for(one)}"
    if held[_MOST:]:
        yield f"  {sum(one.nbytes for one in held[_MOST:])} B in {len(held) - _MOST} more"
    if most.before:
        yield f"  {most.before} B were held before it began"


def _unknown(found: Memory) -> Iterator[str]:
    yield from (f"{one.graph}: {one.problem}" for one in found.programs if one.problem)
    if not found.programs:
        yield "no program of Inductor ran, so nothing is known of what was held"
    elif found.outside >= found.explained:
        yield f"{found.outside} B were held while no program ran: results, or tensors of eager code"


def table(found: Memory) -> Iterator[str]:
    """Yield the equation, the bound, and for each call of a program what it takes, in program order."""
    yield equation(found)
    yield from lower_bound(found)
    for one in found.programs:
        yield from _program(one)


def _program(one: Lowered) -> Iterator[str]:
    if one.taken is None:
        yield f"{one.graph} is not known: {one.problem}"
        return
    taken = one.taken
    told = [
        f"static peak {bytes_of(taken.peak)}",
        f"lower bound {bytes_of(taken.bound)}",
        plural(len(taken.allocations), "allocation"),
        plural(len(taken.levels), "position"),
    ]
    if not taken.all_paths or taken.paths > 1:
        told.append(f"on the worst of {'all' if taken.all_paths else 'the first'} {taken.paths} paths")
    told += [f"{one.before} B held before"] if one.before else []
    yield f"{one.graph} {', '.join(told)}"
    held = {id(allocation) for allocation in one.at_peak}
    for allocation in taken.allocations:
        mark = "*" if id(allocation) in held else " "
        lives = f"{allocation.born}..{'end' if allocation.freed is None else allocation.freed}"
        name = f"{allocation.name}{_later(allocation)}{_for(allocation)}"
        yield f"  {mark} {allocation.nbytes:>12} B  {lives:<11} {name}"
    released = [given for given in taken.inputs if given.freed is not None]
    for given in released:
        yield f"    {-given.nbytes:>12} B  ..{given.freed:<9} {given.name}, an input that nobody else holds"
    yield from (_workspace(workspace, one) for workspace in one.workspaces)
    yield from (_gap(gap) for gap in one.gaps)


def _workspace(one: Workspace, of: Lowered) -> str:
    mark = "*" if one == of.workspace_at_peak else " "
    return f"  {mark} {one.nbytes:>12} B  {one.position:<11} inside {one.operator}{_at(one.source)}"


def _gap(one: Gap) -> str:
    by = f" left by {one.operator}" if one.operator else ""
    return f"    {one.nbytes:>12} B  {one.position:<11} not foreseen,{by} in line {one.line}: {one.text}"


def _later(one: Allocation) -> str:
    return f" (later {', '.join(one.later)})" if one.later else ""


def _for(one: Allocation) -> str:
    nodes = f" for {', '.join(one.origin.nodes[-3:])}" if one.origin.nodes else ""
    return f"{nodes}{_at(one.origin.source)}"


def _at(source: str) -> str:
    return f" at {source}" if source else ""
