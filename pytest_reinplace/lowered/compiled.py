"""The memory of a callable that is compiled here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..base.progress import Progress
from ..call import call
from ..call.state import State
from .calls import Calls
from .memory import Memory, memory


def of(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    progress: Progress,
    *,
    dynamic: bool | None = None,
) -> tuple[Any, Memory]:
    """Compile and call a callable, and return its result and the memory of a later call.

    It is called three times on the same tensors: to compile it, to measure its peak, to follow its
    programs; once more where a program asks for numbers, and twice where bytes are unexplained. What can be
    reached from ``fn`` and the arguments is put back before each call. What is compiled already is called as
    it is.

    Args:
        fn: a function or module.
        args: its arguments.
        kwargs: its keyword arguments.
        progress: is told of the second call.
        dynamic: whether sizes are symbols, as ``torch.compile`` takes it.

    Raises:
        Exception: what the callable raises.
    """
    held = list(call.tensors(fn, args, kwargs))
    device = "cuda" if any(tensor.is_cuda for tensor in held) else "cpu"
    state, calls = State(held), Calls()
    with calls.lowering():
        fast = call.compiled(fn, dynamic=dynamic)
        try:
            fast(*args, **kwargs)
        finally:
            state.restore()
        with progress.measuring(1) as at:
            at(1)
            return memory(calls, lambda: fast(*args, **kwargs), state.restore, device)
