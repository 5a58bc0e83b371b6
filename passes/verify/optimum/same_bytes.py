"""Where real tensors lie: whether they are equal, meet, or are the very same elements; for the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..execution import address, cloned


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor with its strides, its offset and the bytes between its elements."""
    return cloned([tensor])[0]  # type: ignore[no-any-return]


def equal(one: Any, two: Any) -> bool:
    """Return whether two values are equal, NaNs included."""
    if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor):
        return bool(one == two)
    if one.is_floating_point():
        return bool(torch.allclose(one, two, 0, 0, equal_nan=True))
    return bool(torch.equal(one, two))


def overlap(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Return whether two tensors share a byte."""
    if address(one) != address(two) or not one.numel() or not two.numel():
        return False
    return bool(np.shares_memory(_array(one), _array(two)))


def overlap_elsewhere(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Return whether an element of a tensor shares a byte with another element than its own of the other."""
    if same_bytes(one, two) or not overlap(one, two):
        return False
    if one.shape != two.shape:
        return True
    first, second = _addresses(one)[:, None], _addresses(two)[None, :]
    met = (first < second + two.element_size()) & (second < first + one.element_size())
    np.fill_diagonal(met, False)
    return bool(met.any())


def _addresses(tensor: torch.Tensor) -> Any:
    """Return where each element of a small tensor begins."""
    offsets = np.zeros((1,), dtype=np.int64)
    for count, stride in zip(tensor.shape, tensor.stride(), strict=True):
        offsets = (offsets[:, None] + np.arange(count) * stride).reshape(-1)
    return tensor.data_ptr() + offsets * tensor.element_size()


def _array(tensor: torch.Tensor) -> Any:
    """Return the tensor's bytes as an array that is only asked where it lies, on whatever device."""
    return np.asarray(_Placed(tensor))


class _Placed:
    def __init__(self, tensor: torch.Tensor) -> None:
        item = tensor.element_size()
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "data": (tensor.data_ptr(), False),
            "shape": (*tensor.shape, item),
            "strides": (*(s * item for s in tensor.stride()), 1),
        }


def same_bytes(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Return whether element i of one tensor is element i of the other."""
    alike = one.dtype == two.dtype and one.shape == two.shape and one.data_ptr() == two.data_ptr()
    pairs = zip(one.stride(), two.stride(), one.shape, strict=False)
    return alike and all(a == b or n == 1 for a, b, n in pairs)


def same_strides(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Return whether two tensors of one shape are laid out alike."""
    return all(n <= 1 or a == b for n, a, b in zip(one.shape, one.stride(), two.stride(), strict=True))
