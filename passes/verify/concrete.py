"""Symbolic sizes in a graph's arguments, replaced by the numbers of one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_aggregate

from ..errors import ReinplaceError

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class Sizes:
    """What the symbols of a graph stand for in one run.

    Args:
        gm: the graph, whose placeholders have fake values.
        inputs: the values that they are given.
    """

    def __init__(self, gm: GraphModule, inputs: Sequence[Any]) -> None:
        self._known: dict[Any, Any] = {}
        for node, given in zip(gm.graph.find_nodes(op="placeholder"), inputs, strict=False):
            self._bind(node.meta.get("val"), given)

    def _bind(self, fake: Any, given: Any) -> None:
        if isinstance(fake, torch.SymInt | torch.SymFloat) and isinstance(given, int | float):
            self._note(fake, given)
        elif isinstance(fake, torch.Tensor) and isinstance(given, torch.Tensor):
            if fake.layout == torch.strided and fake.dim() == given.dim():
                numbers = zip(
                    (*fake.size(), *fake.stride(), fake.storage_offset()),
                    (*given.size(), *given.stride(), given.storage_offset()),
                    strict=True,
                )
                for symbol, number in numbers:
                    self._note(symbol, number)

    def _note(self, symbol: Any, number: Any) -> None:
        expression = symbol.node.expr if isinstance(symbol, _SYMBOLIC) else None
        if expression is not None and expression.is_Symbol:
            self._known.setdefault(expression, number)

    def number(self, value: Any) -> Any:
        """Return a symbolic number as a plain one, any other value as it is.

        Raises:
            ReinplaceError: it holds a symbol that no input tells.
        """
        if not isinstance(value, _SYMBOLIC):
            return value
        found = value.node.expr.xreplace(self._known)
        if isinstance(value, torch.SymBool) and found in (True, False):
            return bool(found)
        if not (isinstance(found, int | float) or getattr(found, "is_number", False)):
            raise ReinplaceError(f"the size {value} depends on data, and no node computes it")
        return float(found) if isinstance(value, torch.SymFloat) else int(found)


def is_symbolic(node: Node) -> bool:
    """Return whether a node holds a symbolic number among its arguments."""
    leaves: list[Any] = []
    map_aggregate((node.args, node.kwargs), leaves.append)
    return any(isinstance(leaf, _SYMBOLIC) for leaf in leaves)


def make_concrete(gm: GraphModule, sizes: Sizes) -> None:
    """Replace symbolic numbers in the arguments of all nodes, in place.

    Raises:
        ReinplaceError: one is not known.
    """
    changed = False
    for node in gm.graph.nodes:
        if is_symbolic(node):
            node.args = map_aggregate(node.args, sizes.number)
            node.kwargs = map_aggregate(node.kwargs, sizes.number)
            changed = True
    if changed:
        gm.recompile()
