"""What a program's tensors hold, to be put back before it is called again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class State:
    """The contents of tensors, their gradients and the random generators, as they are now.

    Args:
        tensors: strided ones, on any device; those that share a storage are kept once.
    """

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        import torch

        held = list(tensors)
        self._gradients = [(t, t.grad) for t in held if t.is_leaf]
        held += [grad for _, grad in self._gradients if grad is not None]
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in held}
        self._saved = [(storage, storage.clone()) for storage in storages.values()]
        self._random = torch.get_rng_state()
        self._random_on_gpu = torch.cuda.get_rng_state() if torch.cuda.is_available() else None

    def restore(self) -> None:
        """Put everything back."""
        import torch

        for storage, content in self._saved:
            storage.copy_(content)
        for tensor, grad in self._gradients:
            tensor.grad = grad
        torch.set_rng_state(self._random)
        if self._random_on_gpu is not None:
            torch.cuda.set_rng_state(self._random_on_gpu)

    def forget_unchanged(self) -> None:
        """Keep only what holds something else by now: no later call changes more than one call does."""
        self._saved = [(now, then) for now, then in self._saved if not _is_same(now, then)]


def _is_same(one: torch.UntypedStorage, other: torch.UntypedStorage) -> bool:
    import torch

    if one.device.type == "meta" or not one.nbytes():
        return True
    both = [torch.empty(0, dtype=torch.uint8, device=one.device).set_(s) for s in (one, other)]
    return torch.equal(*both)
