"""The seam to torch of the commands: what they set and read that has no public name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._torch import private


def sizes_of_numbers() -> contextlib.AbstractContextManager[Any]:
    """Let sizes be compiled that only the numbers in a tensor tell, inside."""
    patch = private("torch._dynamo.config", "patch")
    found: contextlib.AbstractContextManager[Any] = patch(
        capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True
    )
    return found


def inductor_config(**values: Any) -> contextlib.AbstractContextManager[Any]:
    """Set configuration of Inductor inside, for other backends as well."""
    found: contextlib.AbstractContextManager[Any] = private("torch._inductor.config", "patch")(**values)
    return found


def allocations(profile: Any) -> Iterator[int]:
    """Yield the bytes of each allocation that a profile saw, and of each release, negative, in time order."""
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    yield from (event.nbytes() for event in sorted(events, key=lambda event: event.start_ns()))
