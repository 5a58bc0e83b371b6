"""Operands that a call may be given although it writes the very same elements."""

from __future__ import annotations

from typing import Any

import torch

from ...graph.program_notes import is_one_tensor
from ...ops.schema import is_operator, schema_of
from ..facts.candidate import Candidate
from ..facts.model import Model
from ..facts.place import Place, is_same_to_torch, reads_alike


def is_own_element(model: Model, candidate: Candidate, place: Place) -> bool:
    """Return whether another operand of a candidate's node may lie in the bytes that are written.

    It may when the operator works element by element (torch says so, or a declaration does) and element i
    of the operand is element i of what is written: that element is read before it is written, and for no
    other element. All that the call writes must be of one shape, or there would be no one order of them.
    """
    node = candidate.node
    op: Any = node.target if is_operator(node.target) else node.args[0] if node.args else None
    if not is_operator(op):
        return False
    if not schema_of(op).elementwise and not (
        _is_pointwise_of_torch(op) and is_same_to_torch(candidate.operand, place)
    ):
        return False
    if not reads_alike(place.value, candidate.operand.value):
        return False
    geometry = model.geometry
    met = [w for w in candidate.writes if geometry.overlap(place.region, w) is not False]
    return all(geometry.same(place.region, w) for w in met) and all(
        w.sizes == place.region.sizes for c in model.candidates_of.get(node, ()) for w in c.writes
    )


def is_passed_twice(candidate: Candidate, name: str) -> bool:
    """Return whether the program passed parts of one tensor, to write and to read: eager sees the write."""
    return is_one_tensor(candidate.node, (name, *(arg for _, arg in candidate.labels)))


def _is_pointwise_of_torch(op: Any) -> bool:
    """Return whether torch's own kernel works element by element; such kernels accept full overlap."""
    return torch.Tag.pointwise in op.tags and schema_of(op).name.startswith("aten::")
