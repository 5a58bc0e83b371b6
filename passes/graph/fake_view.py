"""Fake tensors that rewrites make by the thousand, from numbers instead of by running operators.

A run on fake tensors costs as much as all else that a rewrite does to a node. For the views that rewrites
insert most, sizes, strides and offset follow from the arguments alone; whatever is symbolic, conjugated or
out of bounds is left to torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _torch

aten: Any = torch.ops.aten
Layout = tuple[tuple[int, ...], tuple[int, ...], int]  # sizes, strides, offset, in elements
_INT = frozenset({int})


class FakeViews:
    """Views of one mode's fake tensors; the same bytes of one storage give the same fake tensor.

    Args:
        fake_mode: the mode, ``None`` for a graph of real tensors, which are always left to torch.
    """

    def __init__(self, fake_mode: Any) -> None:
        self._fake_mode = fake_mode
        self._patterns: dict[torch.device, torch.Tensor] = {}  # in no graph, so that nobody changes them
        # A kept view keeps its storage alive, so that no other one can come to have its key.
        self._made: dict[tuple[Any, ...], torch.Tensor] = {}
        self._plain: dict[int, torch.Tensor] = {}  # by their identity, and kept alive for it

    def value(self, target: Any, args: tuple[Any, ...], known: Any = None) -> torch.Tensor | None:
        """Return the fake value of a view of ``args[0]``, ``None`` where torch has to be asked.

        Args:
            target: the operator of the view.
            args: the fake value of its first operand, and its other arguments; these may be nodes.
            known: the value that it had so far, returned again where it is right.
        """
        layout_of = _layout_of(target)
        if layout_of is None or not args or not self.is_plain(args[0]):
            return None
        base: torch.Tensor = args[0]
        layout = layout_of(base, *args[1:])
        if layout is None:
            return None
        key = (_torch.storage_key(base), base.dtype, layout)
        if known is not None and self._is_right(known, key):
            return known  # type: ignore[no-any-return]
        made = self._made.get(key)
        if made is None:
            if not fits(base, layout):
                return None
            made = self._made[key] = self._on_storage(base, layout)
        return made

    def like(self, base: torch.Tensor) -> torch.Tensor:
        """Return one of the same sizes and strides as another one on a storage of its own."""
        found: torch.Tensor = _torch.faked(self._fake_mode, _torch.meta_like(base), base.device)
        return found

    def is_plain(self, tensor: Any) -> bool:
        """Return whether a fake tensor is static and means its bytes as they are; many are asked again."""
        if id(tensor) not in self._plain:
            if not is_plain(tensor, self._fake_mode):
                return False
            self._plain[id(tensor)] = tensor
        return True

    def _on_storage(self, base: torch.Tensor, layout: Layout) -> torch.Tensor:
        """Return one of a given layout on the storage of another one, whose dtype it has."""
        device = base.device
        pattern = self._patterns.get(device)
        if pattern is None:
            meta = _torch.meta_on_storage(base, layout)
            self._patterns[device] = pattern = _torch.faked(self._fake_mode, meta, device)
        found: torch.Tensor = _torch.faked_as(pattern, _torch.meta_on_storage(base, layout))
        return found

    def _is_right(self, known: Any, key: tuple[Any, ...]) -> bool:
        storage, dtype, (sizes, strides, offset) = key
        return (
            _torch.is_fake_of(known, self._fake_mode)
            and _torch.storage_key(known) == storage
            and known.dtype == dtype
            and self.is_plain(known)  # to compare others may add a guard
            and (known.size(), known.stride(), known.storage_offset()) == (sizes, strides, offset)
        )


def is_plain(tensor: Any, fake_mode: Any) -> bool:
    """Return whether a fake tensor is static and means its bytes as they are."""
    return (
        fake_mode is not None
        and _torch.is_fake_of(tensor, fake_mode)
        and tensor.layout is torch.strided
        and _are_ints(tensor.storage_offset(), *tensor.size(), *tensor.stride())
        and not (tensor.requires_grad or tensor.is_conj() or tensor.is_neg())
    )


def fits(base: torch.Tensor, layout: Layout) -> bool:
    """Return whether a layout lies inside the storage of ``base``."""
    sizes, strides, last = layout
    if min((last, *sizes, *strides)) < 0:
        return False
    for n, s in zip(sizes, strides, strict=True):
        last += (n - 1) * s
    total: Any = base.untyped_storage().nbytes()
    return isinstance(total, int) and (0 in sizes or (last + 1) * base.element_size() <= total)


def _are_ints(*values: Any) -> bool:
    return _INT.issuperset(map(type, values))


def _layout_of(target: Any) -> Callable[..., Layout | None] | None:
    """Return what tells the layout of a view, ``None`` where torch has to be asked."""
    if target is aten.slice.Tensor:
        return _slice
    if target is aten.select.int:
        return _select
    if target is aten.unsqueeze.default:
        return _unsqueeze
    return _as_strided if target is aten.as_strided.default else None


def _slice(
    base: torch.Tensor, dim: Any = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Layout | None:
    start, end = 0 if start is None else start, 2**63 - 1 if end is None else end
    if not _are_ints(dim, start, end, step) or step < 1 or not -base.dim() <= dim < base.dim():
        return None
    sizes, strides = list(base.size()), list(base.stride())
    first, last, _ = slice(start, end, step).indices(sizes[dim])
    sizes[dim] = len(range(first, last, step))
    offset = base.storage_offset() + first * strides[dim]
    strides[dim] *= step
    return tuple(sizes), tuple(strides), offset


def _select(base: torch.Tensor, dim: Any, index: Any) -> Layout | None:
    if not _are_ints(dim, index) or not -base.dim() <= dim < base.dim():
        return None
    sizes, strides = list(base.size()), list(base.stride())
    size, stride = sizes.pop(dim), strides.pop(dim)
    if not -size <= index < size:
        return None
    return tuple(sizes), tuple(strides), base.storage_offset() + (index % size) * stride


def _unsqueeze(base: torch.Tensor, dim: Any) -> Layout | None:
    if not _are_ints(dim) or not -base.dim() - 1 <= dim <= base.dim():
        return None
    sizes, strides, at = list(base.size()), list(base.stride()), dim % (base.dim() + 1)
    strides.insert(at, sizes[at] * strides[at] if at < base.dim() else 1)
    sizes.insert(at, 1)
    offset: Any = base.storage_offset()
    return tuple(sizes), tuple(strides), offset


def _as_strided(base: torch.Tensor, size: Any, stride: Any, offset: Any = None) -> Layout | None:
    offset = base.storage_offset() if offset is None else offset
    if not (isinstance(size, list | tuple) and isinstance(stride, list | tuple)):
        return None
    if len(size) != len(stride) or not _are_ints(*size, *stride, offset):
        return None
    return tuple(size), tuple(stride), offset
