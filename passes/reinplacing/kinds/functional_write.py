"""Rewriting functional operators to their in-place forms, lists element by element."""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import Node

from ...graph.collective import is_collective
from ...ops import in_place_form
from ..facts.candidate import Candidate
from ..write.rewriter import Rewriter


def rewrite(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Replace a functional call by its in-place form wherever its candidates were accepted."""
    accepted = [c for c in candidates if rewriter.decision.accepted(c)]
    if not accepted:
        return
    if not isinstance(node.args[0], list | tuple):
        operand: Any = node.args[0]
        call = _call(rewriter, node, operand, node.args[1:], node.kwargs)
        call.meta["val"] = operand.meta["val"]
        rewriter.replace(node, operand)
    elif len(accepted) == len(candidates) or is_collective(node.target):
        _mixed(rewriter, node, candidates)
    else:
        _split(rewriter, node, {int(c.slot) for c in accepted})  # type: ignore[arg-type]


def _call(rewriter: Rewriter, node: Node, first: Any, args: Any, kwargs: Any) -> Node:
    form = in_place_form.in_place_form(node.target)
    return rewriter.emitter.call(node, form, (first, *args), kwargs)


def _mixed(rewriter: Rewriter, node: Node, candidates: list[Candidate]) -> None:
    """Write the whole list in place, clones standing in for refused elements: it stays one call.

    Every process of a group must issue the same collectives, so these are never split.
    """
    operands: list[Any] = list(node.args[0])  # type: ignore[arg-type]
    for candidate in candidates:
        if not rewriter.decision.accepted(candidate):
            i = int(candidate.slot)  # type: ignore[arg-type]
            operands[i] = rewriter.cloned(node, candidate, operands[i], node.meta["val"][i])
    call = _call(rewriter, node, operands, node.args[1:], node.kwargs)
    call.meta["val"] = [operand.meta["val"] for operand in operands]
    _hand_out(rewriter, node, dict(enumerate(operands)))


def _split(rewriter: Rewriter, node: Node, accepted: set[int]) -> None:
    """Compute refused elements functionally, from the old values, and then write the others in place.

    What an operator over lists does to one element does not depend on the others.
    """
    operands: list[Any] = list(node.args[0])  # type: ignore[arg-type]
    width, val = len(operands), node.meta["val"]
    made: dict[int, Any] = {i: operands[i] for i in accepted}
    used = {user.args[1] for user in node.users}  # what nobody takes of a list is computed no more
    rest = [i for i in range(width) if i not in accepted and i in used]
    for group in filter(None, (rest, sorted(accepted))):
        args = [_part(v, group, width) for v in node.args]
        kwargs = {k: _part(v, group, width) for k, v in node.kwargs.items()}
        if group is rest:
            call = rewriter.emitter.call(node, node.target, args, kwargs)
            for position, i in enumerate(group):
                made[i] = rewriter.emitter.call(node, operator.getitem, (call, position))
                made[i].meta["val"] = val[i]
        else:
            call = _call(rewriter, node, args[0], args[1:], kwargs)
        call.meta["val"] = [val[i] for i in group]
    _hand_out(rewriter, node, made)


def _part(value: Any, group: list[int], width: int) -> Any:
    """Return the part of an argument that belongs to some elements; what all share stays as it is."""
    if isinstance(value, list | tuple) and len(value) == width:
        return [value[i] for i in group]
    return value


def _hand_out(rewriter: Rewriter, node: Node, made: dict[int, Any]) -> None:
    for user in list(node.users):
        rewriter.replace(user, made[user.args[1]])  # type: ignore[index]
    rewriter.dead.append(node)
