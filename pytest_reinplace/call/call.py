"""Compiling a callable afresh, and calling it as if nothing had been called before."""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _torch, peak
from .state import State
from .twin import leaves

if TYPE_CHECKING:
    import torch

    from ..base.progress import Progress

_numbers = itertools.count()


def compiled(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return ``torch.compile(fn, **options)`` that shares nothing with earlier compilations of ``fn``.

    Dynamo remembers by code and by its name: what was compiled already, and which sizes changed. So each
    callable gets code of its own. What is compiled already is returned as it is.
    """
    import torch

    if _torch.is_compiled(fn):
        return fn
    name = f"{getattr(fn, '__name__', type(fn).__name__)}_{next(_numbers)}"
    template = _calling(fn)
    code = template.__code__.replace(co_name=name)
    fresh = types.FunctionType(code, template.__globals__, name, None, template.__closure__)
    return torch.compile(fresh, **options)


def _calling(fn: Callable[..., Any]) -> types.FunctionType:
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    assert isinstance(call, types.FunctionType)
    return call


def with_peak(
    fast: Callable[..., Any],
    fn: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    progress: Progress,
) -> tuple[Any, int]:
    """Call a compiled callable twice on the same tensors; return the second call's ``(result, peak bytes)``.

    The first call compiles; ``progress`` is told of the second. The contents of all tensors that can be
    reached from the arguments and from ``fn``, their gradients, and the states of the random generators, are
    put back between.
    """
    held = list(tensors(fn, args, kwargs))
    device = "cuda" if any(t.is_cuda for t in held) else "cpu"
    state = State(held)
    try:
        fast(*args, **kwargs)
    finally:
        state.restore()
    with progress.measuring(1) as at:
        at(1)
        return peak.measured(lambda: fast(*args, **kwargs), device)


def tensors(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    """Yield the strided tensors that can be reached from a callable and its arguments."""
    import torch

    closure = inspect.getclosurevars(fn).nonlocals if inspect.isfunction(fn) else {}
    reached = leaves((args, kwargs, fn, getattr(fn, "__self__", None), closure))
    return (
        leaf for leaf in reached.values() if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided
    )
