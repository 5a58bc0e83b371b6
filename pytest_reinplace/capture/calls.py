"""What a compiled graph is called with, whatever it was compiled to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def told(compiled: Any, note: Callable[[list[Any]], None]) -> Any | None:
    """Return a compiled graph that tells what it is called with; ``None`` where its calls are not seen.

    Args:
        compiled: what Inductor's ``compile_fx_inner`` gave.
        note: called with the arguments of each call, before it.
    """
    call = getattr(compiled, "current_callable", None)
    if call is not None:
        compiled.current_callable = _telling(call, note)
        return compiled
    if callable(compiled) and getattr(compiled, "_boxed_call", False):
        telling = _telling(compiled, note)
        telling._boxed_call = True
        return telling
    return None


def _telling(call: Callable[..., Any], note: Callable[[list[Any]], None]) -> Any:
    def telling(args: Any, *more: Any, **kwargs: Any) -> Any:
        if isinstance(args, list | tuple):
            note(list(args))
        return call(args, *more, **kwargs)

    return telling
