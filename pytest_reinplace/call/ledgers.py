"""What Inductor's passes, and the pass under test among them, did to each graph of one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..capture.capture import Capture
from ..capture.followed import Followed, Following
from . import call


def follow(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    pass_name: str,
    folder: Path,
    *,
    dynamic: bool | None = None,
    checks: bool = False,
) -> tuple[list[Followed], Exception | None]:
    """Compile and call a function on the graph backend, and follow its graphs.

    Args:
        fn: a function or module.
        args: its arguments.
        kwargs: its keyword arguments.
        pass_name: the pass under test.
        folder: where modules of passes are looked for, after ``sys.path``.
        dynamic: whether sizes are symbols, as ``torch.compile`` takes it.
        checks: whether each application is checked.

    Returns:
        The graphs in the order in which they came, and what was raised, up to which they go.

    Raises:
        pass_under_test.PassError: there is no such pass.
    """
    following = Following(checks=False)
    with Capture(pass_name, "graph", folder, following=following):
        error = None
        try:
            call.compiled(fn, dynamic=dynamic)(*args, **kwargs)
        except Exception as raised:  # noqa: BLE001  (told with what was followed)
            error = raised
        found = following.all()
        if checks:  # before the capture ends, and torch forgets the Triton kernels that graphs launch
            found = [dataclasses.replace(one, ledger=one.checked()) for one in found]
    return found, error
