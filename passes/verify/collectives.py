"""Asynchronous collectives without a process group: what they read and write happens at their wait.

A collective may look at its input, and write its result, at any moment until somebody waits for it. Here it
does so at the last one: a pass that lets another node touch these bytes earlier computes something else.
Results are those of imagined ranks that hold other numbers, always the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..errors import ReinplaceError
from ..graph.collective import WAIT, is_collective

_GARBAGE = 0x6B


def is_imitated(target: Any) -> bool:
    """Return whether a node's target is a collective, or the wait for one, and no process group runs it."""
    if not is_collective(target):
        return False
    return not (torch.distributed.is_available() and torch.distributed.is_initialized())


def is_known(target: Any) -> bool:
    """Return whether a collective, or a wait, is one that can be imitated."""
    name = str(target).split(".")[1]
    return name == WAIT or _kind(name) in _RESULTS


def _kind(name: str) -> str:
    return name.rstrip("_").removesuffix("_out").removesuffix("_coalesced")


def is_started(target: Any) -> bool:
    """Return whether a node's target is a collective, whose result means nothing until the wait for it."""
    return is_imitated(target) and WAIT not in str(target)


class InFlight:
    """The collectives of one run that nobody has waited for yet.

    Args:
        always: whether collectives are imitated although there is a process group.
    """

    def __init__(self, *, always: bool = False) -> None:
        self._always = always
        self._pending: dict[int, Callable[[], None]] = {}

    def imitates(self, target: Any) -> bool:
        """Return whether a node's target is a collective, or the wait for one, that is imitated here."""
        return is_imitated(target) or (self._always and is_collective(target))

    def call(self, target: Any, args: Any, kwargs: dict[str, Any], *, in_place: bool = False) -> Any:
        """Start a collective, or wait for one.

        Args:
            target: the operator.
            args: its arguments.
            kwargs: and the others.
            in_place: whether a functional collective is to work on its input itself.

        Raises:
            ReinplaceError: a collective that is not known here.
        """
        name = str(target).split(".")[1]
        if name == WAIT:
            landing = self._pending.pop(_where(args[0]), None)
            if landing is not None:
                landing()
            return args[0]
        is_inplace = in_place or name.endswith("_")
        kind = _kind(name)
        if kind not in _RESULTS:
            raise ReinplaceError(f"expected one of the collectives {', '.join(_RESULTS)}, got {target}")
        make = _RESULTS[kind]
        given = dict(zip((a.name for a in target._schema.arguments), args, strict=False)) | kwargs
        group_size = int(given.get("group_size", 2))
        if isinstance(args[0], list | tuple):
            return [self._start(x, make, group_size, is_inplace, None) for x in args[0]]
        return self._start(args[0], make, group_size, is_inplace, given.get("out"))

    def _start(
        self, x: torch.Tensor, make: _Make, group_size: int, is_inplace: bool, out: torch.Tensor | None
    ) -> torch.Tensor:
        if is_inplace:
            before, result = x.clone(), x
        else:
            before, result = x, out if out is not None else make(x, group_size)
        _garble(result)
        self._pending[_where(result)] = lambda: _land(result, make(before, group_size))
        return result


def _where(tensor: torch.Tensor) -> int:
    return int(tensor.data_ptr()) or id(tensor)


def _land(result: torch.Tensor, value: torch.Tensor) -> None:
    result.copy_(value)


def _garble(tensor: torch.Tensor) -> None:
    """Put something into a buffer that a collective works on: its content means nothing until the wait."""
    tensor.fill_(_GARBAGE)


_Make = Callable[[torch.Tensor, int], torch.Tensor]


def _other(x: torch.Tensor, rank: int) -> torch.Tensor:
    """Return what another rank holds."""
    return x if x.dtype == torch.bool else x * (2 * rank + 1) + rank


def _reduced(x: torch.Tensor, group_size: int) -> torch.Tensor:
    total = x.clone(memory_format=torch.contiguous_format)
    for rank in range(1, group_size):
        total = total + _other(x, rank)
    return total


def _gathered(x: torch.Tensor, group_size: int) -> torch.Tensor:
    return torch.cat([_other(x, rank) for rank in range(group_size)]).contiguous()


def _scattered(x: torch.Tensor, group_size: int) -> torch.Tensor:
    """Return this rank's part, into which every other part goes too, so that no element is left unread."""
    parts = _reduced(x, group_size).unflatten(0, (group_size, -1))
    others = torch.stack([_other(part, 2 * i) for i, part in enumerate(parts)])
    return others.sum(0, dtype=x.dtype).contiguous()


_RESULTS: dict[str, _Make] = {
    "all_reduce": _reduced,
    "broadcast": lambda x, group_size: _other(x, 1).clone(memory_format=torch.contiguous_format),
    "all_gather_into_tensor": _gathered,
    "reduce_scatter_tensor": _scattered,
}
