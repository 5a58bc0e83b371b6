"""View operators and the scatters that write through them; views that name bytes by an offset."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.fx import Node

from .. import _torch
from ..memory.region import as_size
from .schema import argument, traits_of
from .traits import overloads

_ABSOLUTE = overloads(lambda traits: traits.names_offset)


def is_expanded(value: torch.Tensor) -> bool:
    """Return whether elements of a tensor are the same by a stride of 0."""
    pairs = zip(map(as_size, value.size()), map(as_size, value.stride()), strict=True)
    return any(n != 1 and s == 0 for n, s in pairs)


def absolute() -> tuple[Any, ...]:
    """Return the targets whose nodes may name bytes by an offset into the storage."""
    return (*_ABSOLUTE, _torch.hop("auto_functionalized_v2"))


def is_absolute(node: Node) -> bool:
    """Return whether a node names bytes by an offset into the storage rather than into its operand."""
    if node.op != "call_function":
        return False
    target = node.target
    if target is _torch.hop("auto_functionalized_v2"):
        return _names_offset(tuple(node.kwargs))
    return traits_of(target).names_offset and argument(node, "storage_offset") is not None


@functools.lru_cache(maxsize=1024)
def _names_offset(keys: tuple[str, ...]) -> bool:
    """Return whether a v2 wrapper with these arguments makes a view by an offset; most have the same ones."""
    return any(str(key).endswith("_storage_offset") for key in keys)
