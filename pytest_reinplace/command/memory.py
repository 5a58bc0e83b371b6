"""``pytest-reinplace memory``: what the programs that Inductor makes of a function hold, and when."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.visible import visible
from . import inputs
from .errors import CommandError
from .explain import check

if TYPE_CHECKING:
    from ..lowered.memory import Memory


def run(
    function: str,
    shapes: Sequence[str],
    maker: str | None,
    pass_name: str,
    device: str,
    form: str,
    *,
    dynamic: bool = False,
) -> int:
    """Print the memory of a call; returns 0, or 1 where a program, or some bytes, could not be explained.

    Args:
        function: ``module:function``.
        shapes: its arguments, each as ``float32[2,5]``.
        maker: ``module:function`` that returns them instead.
        pass_name: the pass under test.
        device: where the tensors of ``shapes`` are.
        form: ``"text"`` or ``"json"``.
        dynamic: whether sizes are symbols.

    Raises:
        CommandError: function, inputs or pass are wrong, or the function raises.
    """
    fn = inputs.find(function, "function")
    arguments = inputs.made_by(maker) if maker is not None else inputs.described(shapes, device)
    check(function, fn, arguments)
    found = _measured(function, fn, arguments, pass_name, dynamic=dynamic or None)
    if form == "json":
        print(json.dumps({"function": function, "pass": pass_name, **found.to_dict()}, indent=2))
    else:
        from ..lowered.told import table

        print(f"{function}: pass {pass_name}, backend inductor")
        for line in table(found):
            print(visible(line))
    return int(found.unexplained != 0 or any(one.problem for one in found.programs))


def _measured(
    name: str, fn: Callable[..., Any], arguments: inputs.Arguments, pass_name: str, *, dynamic: bool | None
) -> Memory:
    from ..base.progress import Progress
    from ..call import failure
    from ..capture.capture import Capture
    from ..capture.pass_under_test import PassError
    from ..entry.run import importable
    from ..lowered import compiled

    try:
        capture = Capture(pass_name, "inductor", Path.cwd(), asker="command")
    except PassError as error:
        raise CommandError(f"--pass: {error}") from None
    try:
        with importable(Path.cwd()), capture:
            _, found = compiled.of(fn, arguments.args, arguments.kwargs, Progress(), dynamic=dynamic)
    except Exception as error:
        traceback.print_exception(failure.shortened(error))
        first = next(iter(str(error).splitlines()), "")
        raise CommandError(f"{name} raised {type(error).__name__}: {first}") from error
    if not found.programs:
        raise CommandError(f"{name}: no graph was compiled, so Inductor has made no program of it")
    return found
