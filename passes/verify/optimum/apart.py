"""Outputs of real runs that share storage where they should not, and the cheapest copies that part them."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule

from ..equivalence import Effects
from ..execution import address, leaves
from .same_bytes import copy_of
from .slots import nbytes


def output_nodes(gm: GraphModule) -> list[Any]:
    """Return the node of each leaf that a graph returns."""
    output = next(n for n in reversed(gm.graph.nodes) if n.op == "output")
    return [node for _, node in leaves(output.args[0])]


def unshared(expected: Effects, actual: Effects, nodes: list[Any]) -> tuple[int, Effects] | None:
    """Clone outputs until none shares storage that it should not; the least bytes, or ``None``.

    Outputs that share storage as written stay together, so only one that stands alone can be cloned.
    """
    inputs = {address(v) for _, v in actual.inputs if isinstance(v, torch.Tensor)}
    given = {address(v) for _, v in expected.inputs if isinstance(v, torch.Tensor)}
    classes: dict[int, dict[int, list[int]]] = {}
    for i, ((_, was), (_, now)) in enumerate(zip(expected.outputs, actual.outputs, strict=True)):
        if isinstance(was, torch.Tensor) and now.numel():
            classes.setdefault(address(now), {}).setdefault(address(was), []).append(i)
    outputs, total = list(actual.outputs), 0
    for key, groups in classes.items():
        loose = [g for k, g in groups.items() if k not in given]
        if key not in inputs and loose and len(loose) == len(groups):
            loose.remove(max(loose, key=lambda g: (len({nodes[i] for i in g}), nbytes(outputs[g[0]][1]))))
        for group in loose:
            if len({nodes[i] for i in group}) > 1:
                return None
            copy = copy_of(outputs[group[0]][1])
            total += nbytes(copy)
            for i in group:
                outputs[i] = (outputs[i][0], copy)
    return total, Effects(outputs, actual.inputs)
