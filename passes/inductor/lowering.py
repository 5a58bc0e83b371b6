"""What Inductor makes of a node: a kernel that it calls, code of its own, or nothing that is in memory.

The questions are alike and not the same. From the widest to the narrowest:

======================  ==========================================================================
``has_code``            an operator is lowered, and not to a call of its kernel
``is_generated``        its own code computes it: no product, whose loops take in no other store
``is_put_off``          it may be computed where it is used, and so later than its place in the graph
``is_pointwise``        each element is computed where it is used, of few elements
``is_of_nothing``       it may be computed of nothing that is in memory
======================  ==========================================================================

Inductor unrolls a reduction of few elements, and computes the sum of seven where it is used, as if it were
elementwise (``config.unroll_reductions_threshold``). A longer one is a loop, and its results are in memory
(``is_loop``). What else has fewer elements than its operands, a part that is gathered, padded away, pooled or
interpolated, it computes where it is used whatever the sizes are.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from ..graph.alias import viewed
from ..graph.collective import is_collective
from ..ops import lists
from ..ops.computed import has_code_of
from ..ops.in_place_form import in_place_form
from ..ops.schema import schema_of, tensors, traits_of
from ..reinplacing.facts.candidate import Candidate

_MANY = 64  # where Inductor unrolls no more than it does by default


def is_put_off(node: Node, stored: dict[Node, bool]) -> bool:
    """Return whether Inductor may put off computing a value; notes in ``stored`` which lists it may not.

    A product counts: of matrices with one row or column it is computed as a sum of products may be. Complex
    values have kernels, and loops end in memory. A collective is started where it stands.
    """
    val: Any = node.meta.get("val")
    if not isinstance(val, torch.Tensor):
        return False
    made_by = lists.maker(node)
    if made_by is not None:
        if made_by not in stored:  # asked once for all elements of a list
            stored[made_by] = is_list_stored(made_by)
        return not stored[made_by]
    call = call_of(node)
    if val.is_complex() or not has_code_of(call) or schema_of(call.target).mutable:
        return False
    return not is_loop(call) and not is_collective(call.target)


def is_list_stored(node: Node) -> bool:
    """Return whether a kernel for lists, which only GPUs have, stores the elements of a list."""
    values = [element.meta.get("val") for element in node.users]
    found = [value for value in values if isinstance(value, torch.Tensor)]
    return bool(found) and all(map(lists.has_blocks, found)) and not lists.is_unstored(node)


def is_of_nothing(node: Node, known: dict[Node, bool]) -> bool:
    """Return whether Inductor computes a value, and may do so of nothing that is in memory.

    Args:
        node: the value.
        known: the same of all nodes before.
    """
    source = viewed(node) or call_of(node)
    if source is not node:
        return known[source]
    if not has_code_of(node) or schema_of(node.target).mutable:
        return False
    return all(known[n] for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor))


def call_of(node: Node) -> Node:
    """Return the call that computes a node: one of several results is a node of its own."""
    return node.all_input_nodes[0] if node.target is operator.getitem else node


def is_loop(node: Node) -> bool:
    """Return whether an operator is a reduction of so many elements into each one that it is not unrolled."""
    if torch.Tag.reduction not in node.target.tags:  # type: ignore[union-attr]
        return False
    results = [v.numel() for v in tensors(node.meta.get("val"))]
    operands = [v.numel() for n in node.all_input_nodes for v in tensors(n.meta.get("val"))]
    if not results or not operands or not all(isinstance(n, int) for n in (*results, *operands)):
        return False
    unrolled = int(_torch.inductor_setting("unroll_reductions_threshold") or 0)
    return max(operands) >= max(_MANY, unrolled) * max(results)


def is_stored_by_inductor(candidate: Candidate) -> bool:
    """Return whether Inductor's own code stores the result, and not a kernel that it calls."""
    if traits_of(candidate.node.target).is_scatter:
        return True
    form = in_place_form(candidate.node.target) if candidate.kind.by_form else None
    if form is not None and lists.is_list(candidate.node):
        return True
    return form is not None and _torch.is_lowered(form) and not _torch.is_fallback(form)
