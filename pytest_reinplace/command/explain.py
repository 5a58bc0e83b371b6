"""``pytest-reinplace explain``: a function compiled once, outside pytest, and its candidates explained."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import wording
from ..base.visible import visible
from . import inputs
from .errors import CommandError
from .inputs import Arguments

if TYPE_CHECKING:
    from ..capture.captured import CapturedGraph


def run(
    function: str, shapes: Sequence[str], maker: str | None, pass_name: str, backend: str, device: str
) -> int:
    """Print every candidate of what ``function`` compiles to; returns the exit code.

    Raises:
        CommandError: function, inputs or pass are wrong, or it compiles to nothing.
    """
    fn = inputs.find(function, "function")
    arguments = inputs.made_by(maker) if maker is not None else inputs.described(shapes, device)
    check(function, fn, arguments)
    graphs = compiled(function, fn, arguments, pass_name, backend)
    if not graphs:
        raise CommandError(
            f"{function}: no graph was compiled, so there is nothing to explain: torch.compile found no "
            "operation on tensors in it"
        )
    print(f"{function}: pass {pass_name}, backend {backend}")
    for graph in graphs:
        for line in lines(graph):
            print(visible(line))
    return 0


def check(name: str, fn: Callable[..., Any], given: Arguments) -> None:
    """Raise :class:`CommandError` where a function does not take its arguments."""
    from ..call.arguments import mismatch

    if told := mismatch(fn, given.args, given.kwargs):
        raise CommandError(
            f"{name}{told}; give each argument as --shape float32[8,16], or all of them by "
            "--inputs module:function"
        )


def compiled(
    name: str, fn: Callable[..., Any], arguments: Arguments, pass_name: str, backend: str
) -> tuple[CapturedGraph, ...]:
    """Return the graphs of one call; raises :class:`CommandError` where it fails."""
    from ..call import call, failure
    from ..capture.capture import Capture
    from ..capture.pass_under_test import PassError
    from ..entry.run import importable

    try:
        capture = Capture(pass_name, backend, Path.cwd(), asker="command")
    except PassError as error:
        raise CommandError(f"--pass: {error}") from None
    try:
        with importable(Path.cwd()), capture:
            call.compiled(fn)(*arguments.args, **arguments.kwargs)
    except Exception as error:
        traceback.print_exception(failure.shortened(error))
        first = next(iter(str(error).splitlines()), "")
        advice = failure.remedy(error, "--backend graph")
        told = f"{name} raised {type(error).__name__}: {first}"
        raise CommandError(f"{told}; {advice}" if advice else told) from error
    return tuple(capture.graphs)


def lines(graph: CapturedGraph) -> Iterator[str]:
    """Yield what is said about a graph: its numbers, then each candidate in the words of the plugin."""
    report = graph.report
    text = (
        f"{graph.id} {wording.plural(len(report.outcomes), 'candidate')}, {len(report.reinplaced)} in place, "
        f"{len(report.clones)} cloned"
    )
    yield f"{text}, {wording.bytes_of(report.clone_bytes)}" if report.clones else text
    if graph.problem:
        yield f"  could not be judged: {graph.problem}"
    if graph.suspicious:
        yield f"  {graph.suspicion}"
    for outcome in report.outcomes:
        if outcome.reinplaced:
            yield f"  {outcome}"
        else:
            yield from (f"  {line}" for line in wording.clone_lines(outcome))
