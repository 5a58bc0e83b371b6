"""Whether a callable takes the arguments that it is to be called with, asked before anything is compiled."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base.wording import plural
from ._torch import eager_of


def check(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` where a callable does not take these arguments: to Dynamo that is a graph break."""
    __tracebackhide__ = True
    check_callable(fn)
    fn = eager_of(fn)
    told = mismatch(fn, args, kwargs)
    if told:
        count = len(args) + len(kwargs)
        got = plural(count, "argument") if count else "none"
        name = getattr(fn, "__name__", type(fn).__name__)
        raise TypeError(f"expected arguments for {name}{told}; got {got}")


def check_callable(fn: object) -> None:
    """Raise ``TypeError`` where something is no callable: ``torch.compile`` takes anything."""
    __tracebackhide__ = True
    if not callable(fn):
        raise TypeError(f"expected a callable and its arguments, got {fn!r}")


def mismatch(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the signature of a callable, its line and what is wrong with arguments; empty where they fit.

    What a decorator takes is asked, not what it wraps: it may add arguments, and so may a hook of a module.
    """
    if getattr(fn, "_forward_pre_hooks", None):
        return ""
    target = getattr(fn, "forward", fn)
    try:
        signature = inspect.signature(target, follow_wrapped=False)
    except (TypeError, ValueError):  # one that Python cannot inspect
        return ""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return f"{_shown(signature)}{_place(target)}: {error}"
    return ""


def _shown(signature: inspect.Signature) -> str:
    """Return the names alone: a default may be a tensor."""
    empty = inspect.Parameter.empty
    plain = [
        p.replace(annotation=empty, default=empty if p.default is empty else ...)
        for p in signature.parameters.values()
    ]
    return str(inspect.Signature(plain)).replace("Ellipsis", "...")


def _place(target: Callable[..., Any]) -> str:
    code = getattr(target, "__code__", None)
    if code is None:
        return ""
    path = code.co_filename
    path = os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path
    return f" at {path}:{code.co_firstlineno}"
