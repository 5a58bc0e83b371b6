"""The seam to what calls compiled code: Dynamo, and torch's profiler. See :mod:`..base._torch`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from ..base._torch import private


def folder() -> str:
    """Return the folder that torch lies in, with a separator at its end."""
    import torch

    return os.path.join(os.path.dirname(torch.__file__), "")


def breaks_at(error: Exception) -> tuple[str, int, str] | None:
    """Return file, line and code at which Dynamo could not go on; ``None`` for any other error."""
    if not isinstance(error, private("torch._dynamo.exc", "Unsupported")):
        return None
    stack = getattr(error, "real_stack", None) or []
    return (stack[-1].filename, stack[-1].lineno, stack[-1].line or "") if stack else None


def other_backends() -> list[str]:
    """Return the backends but Inductor that ``torch.compile`` was called with since the last reset."""
    if "torch._dynamo" not in sys.modules:
        return []
    seen = private("torch._dynamo.eval_frame", "cached_backends").values()
    names = [getattr(backend, "compiler_name", None) for backend in seen]
    return [name for name in dict.fromkeys(names) if name not in (None, "inductor")]


def is_compiled(fn: Any) -> bool:
    """Return whether a callable already is the result of ``torch.compile``."""
    return hasattr(fn, "_torchdynamo_orig_callable") or hasattr(fn, "_orig_mod")


def eager_of(fn: Any) -> Any:
    """Return what a callable was before ``torch.compile``, itself where it is not compiled."""
    return getattr(fn, "_torchdynamo_orig_callable", None) or getattr(fn, "_orig_mod", None) or fn


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Run what is inside without compiling anything, and put the random generators back afterwards."""
    import torch

    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices), torch.compiler.set_stance("force_eager"):
        yield


def allocations(profile: Any) -> Iterator[int]:
    """Yield the bytes of each CPU allocation (positive) and release (negative), in time order."""
    allocation = private("torch._C._profiler", "_EventType").Allocation
    pending = list(profile.profiler.kineto_results.experimental_event_tree())
    events = []
    while pending:
        event = pending.pop()
        pending.extend(event.children)
        if event.tag == allocation and event.extra_fields.device.type == "cpu":
            events.append((event.start_time_ns, event.extra_fields.alloc_size))
    yield from (size for _, size in sorted(events, key=lambda pair: pair[0]))
