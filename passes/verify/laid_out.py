"""Running a rewritten graph with each fresh value laid out as its compiler takes it to be.

A compiler trusts the strides that it has recorded for a value, and makes them so when it generates code. Run
node by node, an operator may lay its result out in another way, and a later ``as_strided`` then looks at
other elements than it will in the compiled program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from ..errors import ReinplaceError
from .concrete import Sizes
from .execution import address, leaves


class LaidOut:
    """Evaluates nodes; fresh results get the strides that the graph says they have.

    Args:
        sizes: what symbols stand for.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._seen: set[int] = set()
        self._held: list[torch.Tensor] = []

    def around(self, node: Node, evaluate: Callable[[], Any]) -> Any:
        """Evaluate a node, and lay its result out anew where it is a tensor on a storage of its own."""
        value = evaluate()
        fake = node.meta.get("val")
        if isinstance(value, torch.Tensor) and isinstance(fake, torch.Tensor) and node.op == "call_function":
            if address(value) not in self._seen and not self._is_as_recorded(value, fake):
                value = self._as_recorded(value, fake)
        for _, leaf in leaves(value):
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                self._seen.add(address(leaf))
                self._held.append(leaf)  # or its address could come to mean another tensor
        return value

    def given(self, inputs: list[Any]) -> None:
        """Note the storages of the inputs, which are nobody's to lay out."""
        self._seen.update(address(t) for t in inputs if isinstance(t, torch.Tensor))

    def _is_as_recorded(self, value: torch.Tensor, fake: torch.Tensor) -> bool:
        if value.layout != torch.strided or not value.numel() or value.dim() != fake.dim():
            return True
        return self._layout(fake) == (tuple(value.stride()), value.storage_offset())

    def _layout(self, fake: torch.Tensor) -> tuple[tuple[int, ...], int]:
        strides = tuple(self._sizes.number(s) for s in fake.stride())
        return strides, int(self._sizes.number(fake.storage_offset()))

    def _as_recorded(self, value: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        try:
            strides, offset = self._layout(fake)
            nbytes = int(self._sizes.number(fake.untyped_storage().nbytes()))
        except ReinplaceError:
            return value
        need = offset + 1 + sum((n - 1) * s for n, s in zip(value.shape, strides, strict=True))
        room = max(need, nbytes // value.element_size())
        fresh = torch.zeros(room, dtype=value.dtype, device=value.device)
        found = fresh.as_strided(value.shape, strides, offset)
        if overlaps_itself(found):
            return value
        return found.copy_(value)


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Return whether two elements of a small tensor are the same bytes."""
    if tensor.is_contiguous():
        return False
    offsets = {0}
    for count, stride in zip(tensor.shape, tensor.stride(), strict=True):
        offsets = {o + i * stride for o in offsets for i in range(count)}
    return len(offsets) < tensor.numel()
