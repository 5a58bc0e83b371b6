"""``pytest-reinplace memory``: what the programs that Inductor makes of a function hold, and when."""

from __future__ import annotations

import dataclasses
import json
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import whole_file
from ..base.visible import visible
from ..reports.template import missing
from . import inputs
from .errors import CommandError
from .explain import check

if TYPE_CHECKING:
    from ..capture.capture import Capture
    from ..lowered.memory import Memory
    from ..memory_views.drawn import Side


@dataclasses.dataclass(frozen=True, slots=True)
class Files:
    """The files that are written, ``None`` where one is not asked for.

    Args:
        html: a page.
        perfetto: a trace for Perfetto.
        snapshot: a snapshot for torch's memory viewer.
    """

    html: Path | None = None
    perfetto: Path | None = None
    snapshot: Path | None = None

    def check(self) -> None:
        """Raise :class:`CommandError` where it is known already that one cannot be written."""
        if self.html is not None and "jinja2" in missing():
            raise CommandError("--html needs jinja2: pip install jinja2")
        for path in (self.html, self.perfetto, self.snapshot):
            if path is not None and not path.parent.is_dir():
                raise CommandError(f"cannot write {visible(path)}: there is no folder {visible(path.parent)}")

    def write(self, function: str, sides: Sequence[Side]) -> None:
        """Write those that are asked for; raises :class:`CommandError` where one cannot be written."""
        for path, content in self._contents(function, sides):
            try:
                whole_file.write(path, content)
            except OSError as error:
                raise CommandError(f"cannot write {visible(path)}: {error.strerror or error}") from None

    def _contents(self, function: str, sides: Sequence[Side]) -> Iterator[tuple[Path, str | bytes]]:
        from ..memory_views import page, perfetto, snapshot

        if self.html is not None:
            yield self.html, page.page(function, sides)
        if self.perfetto is not None:
            yield self.perfetto, json.dumps(perfetto.trace(function, sides))
        if self.snapshot is not None:
            yield self.snapshot, snapshot.dump(sides)


def run(
    function: str,
    shapes: Sequence[str],
    maker: str | None,
    pass_name: str,
    device: str,
    form: str,
    *,
    dynamic: bool = False,
    beside: str | None = None,
    files: Files | None = None,
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
        beside: another pass, told before that under test.
        files: what is written besides.

    Raises:
        CommandError: function, inputs or pass are wrong, the function raises, or a file cannot be written.
    """
    files = files or Files()
    files.check()
    fn = inputs.find(function, "function")
    captures = [_capture("--beside", beside)] if beside else []
    captures.append(_capture("--pass", pass_name))
    sides = []
    for capture in captures:
        arguments = inputs.made_by(maker) if maker is not None else inputs.described(shapes, device)
        check(function, fn, arguments)
        sides.append(_measured(function, fn, arguments, capture, dynamic=dynamic or None))
    _tell(function, sides, form)
    files.write(function, sides)
    return int(any(_is_unexplained(side.memory) for side in sides))


def _tell(function: str, sides: Sequence[Side], form: str) -> None:
    if form == "json":
        told = [{"pass": side.pass_name, **side.memory.to_dict()} for side in sides]
        beside = {"beside": told[0]} if told[1:] else {}
        print(json.dumps({"function": function, **told[-1], **beside}, indent=2))
        return
    from ..lowered.told import table

    for side in sides:
        print(f"{function}: pass {side.pass_name}, backend inductor")
        for line in table(side.memory):
            print(visible(line))


def _is_unexplained(found: Memory) -> bool:
    return found.unexplained != 0 or any(one.problem for one in found.programs)


def _capture(option: str, pass_name: str) -> Capture:
    """Return what puts a pass under test; raises :class:`CommandError` where there is none of its name."""
    from ..capture.capture import Capture
    from ..capture.pass_under_test import PassError
    from ..copies.lowering import Lowering

    try:
        return Capture(pass_name, "inductor", Path.cwd(), asker="command", onlooker=Lowering)
    except PassError as error:
        raise CommandError(f"{option}: {error}") from None


def _measured(
    name: str, fn: Callable[..., Any], arguments: inputs.Arguments, capture: Capture, *, dynamic: bool | None
) -> Side:
    from ..base.progress import Progress
    from ..call import failure
    from ..entry.run import importable
    from ..lowered import compiled
    from ..memory_views.drawn import side

    try:
        with importable(Path.cwd()), capture:
            _, found = compiled.of(fn, arguments.args, arguments.kwargs, Progress(), dynamic=dynamic)
    except Exception as error:
        traceback.print_exception(failure.shortened(error))
        first = next(iter(str(error).splitlines()), "")
        raise CommandError(f"{name} raised {type(error).__name__}: {first}") from error
    if not found.programs:
        raise CommandError(f"{name}: no graph was compiled, so Inductor has made no program of it")
    return side(capture.pass_name, found, capture.since(0))
