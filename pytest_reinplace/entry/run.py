"""Builds a corpus entry's program and runs it: eagerly, and compiled with the pass under test."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.nearest import nearest_attribute
from ..base.progress import Progress
from ..call.program import BuilderError, Program
from ..call.state import State
from ..call.twin import Twin, differences, leaves, twin
from ..capture import _triton, triton_cpu
from ..copies.lowering import Lowering
from ..lowered.calls import Calls
from . import ahead_of_time
from .entry import Entry, Preset
from .held import Held, held
from .verdict import EntryVerdict

if TYPE_CHECKING:
    from ..capture.capture import Capture
    from ..capture.followed import Following


def run(
    entry: Entry,
    preset: Preset,
    pass_name: str,
    backend: str,
    rootdir: Path,
    *,
    pictured: bool = False,
    progress: Progress | None = None,
    verified: bool = False,
    following: Following | None = None,
) -> EntryVerdict:
    """Build, run eagerly, compile, run and compare one entry.

    Args:
        entry: the entry.
        preset: the preset of it to run.
        pass_name: the pass under test.
        backend: ``"inductor"`` or ``"graph"``.
        rootdir: where builders are looked for, too.
        pictured: whether its graphs are drawn for a page.
        progress: is told when something is compiled.
        verified: whether its graphs are checked against the contract.
        following: keeps the ledgers of what passes and rules do to them.

    Raises:
        BuilderError: the builder is wrong.
        TwinError: the program cannot be copied for the eager run.
    """
    import torch

    from ..capture.capture import Capture

    torch.compiler.reset()
    capture = Capture(
        pass_name,
        backend,
        pictured=pictured,
        verified=verified,
        progress=progress,
        asker="entry",
        following=following,
        onlooker=Lowering,
    )
    with importable(entry.path.parent, rootdir), triton_cpu.working(), built(entry, preset) as program:
        return _verdict(entry, preset, program, capture)


def _verdict(entry: Entry, preset: Preset, program: Program, capture: Capture) -> EntryVerdict:
    """Run a program eagerly and under a capture, and compare; where a limit asks for it, follow a call."""
    import torch

    pair, backend = twin(program), capture.backend
    eager = pair.after_eager(called(pair.eager.fn, pair.eager, entry))
    is_limited = backend == "inductor" and preset.peak_over_bound(capture.pass_name) is not None
    state, calls = (strided(pair) if is_limited else None), Calls()
    lowering = calls.lowering() if is_limited else contextlib.nullcontext()
    with configured(entry), capture, lowering:  # eagerly no option counts
        just_in_time = functools.partial(
            torch.compile, fullgraph=entry.fullgraph, dynamic=entry.dynamic or None
        )
        fn = ahead_of_time.chosen(entry, backend, just_in_time)(pair.program.fn)
        compiled = pair.after_compiled(called(fn, pair.program, entry))
        found = tuple(differences(eager, compiled, preset.tolerance))
        graphs, memory = tuple(capture.checked_graphs), Held()
        del eager, compiled
        if state is not None:
            again = functools.partial(called, fn, pair.program, entry)
            memory = held(calls, again, state.restore, preset.device)
    return EntryVerdict(entry, preset, capture.pass_name, backend, graphs, found, memory)


def strided(pair: Twin) -> State:
    """Return the state of a twin's original, as far as it can be put back."""
    import torch

    originals = (tensor for _, tensor, _ in pair.tensors)
    return State(tensor for tensor in originals if tensor.layout == torch.strided)


# Inductor pads a matrix product where two timings say so, and what is padded takes other memory: an exact
# peak would change from one machine, or one run, to the next.
_NOT_TIMED = {"shape_padding": False}


@contextlib.contextmanager
def configured(entry: Entry) -> Iterator[None]:
    """Set the Inductor options of an entry for the block; raises :class:`BuilderError`.

    Choices that Inductor makes by timing, and that change memory, are switched off unless the entry's
    options ask for them.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_triton.inductor_config({**_NOT_TIMED, **entry.options}))
        except ValueError as error:
            raise BuilderError(f"{entry.where}: options: {error}") from error
        yield


def called(fn: Callable[..., Any], program: Program, entry: Entry) -> Any:
    """Call a program, forward or both ways, with the same random numbers each time; return its result."""
    import torch

    torch.manual_seed(0)
    if program.setup is not None:
        program.setup()
    return plainly(fn, program, entry)


def plainly(fn: Callable[..., Any], program: Program, entry: Entry) -> Any:
    """Call a program, forward or both ways, as the random generators stand; return its result."""
    import torch

    if not entry.grad:
        with torch.no_grad():
            return fn(*program.args, **program.kwargs)
    result = fn(*program.args, **program.kwargs)
    parts = [
        leaf for leaf in leaves(result).values() if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    if not parts:
        raise BuilderError(
            f"{entry.where}: grad is true, but no result of {entry.builder} requires a gradient"
        )
    torch.stack([part.float().sum() for part in parts]).sum().backward()
    return result


@contextlib.contextmanager
def ready(entry: Entry, preset: Preset, rootdir: Path) -> Iterator[Program]:
    """Build an entry's program for the block, with its Inductor options; raises :class:`BuilderError`."""
    with (
        importable(entry.path.parent, rootdir),
        triton_cpu.working(),
        configured(entry),
        built(entry, preset) as program,
    ):
        yield program


@contextlib.contextmanager
def importable(*folders: Path) -> Iterator[None]:
    """Let modules in ``folders`` be imported for the block; installed ones come first."""
    added = [str(folder) for folder in folders if str(folder) not in sys.path]
    sys.path.extend(added)
    try:
        yield
    finally:
        for folder in added:
            with contextlib.suppress(ValueError):
                sys.path.remove(folder)


@contextlib.contextmanager
def built(entry: Entry, preset: Preset) -> Iterator[Program]:
    """Build an entry's program for the block, and tear it down after; raises :class:`BuilderError`."""
    program = build(entry, preset)
    try:
        yield program
    finally:
        if program.teardown is not None:
            program.teardown()


def build(entry: Entry, preset: Preset) -> Program:
    """Return a fresh program of an entry, to be torn down by the caller; raises :class:`BuilderError`."""
    builder = _builder(entry)
    arguments = {"device": preset.device, **preset.args}
    try:
        inspect.signature(builder).bind(**arguments)
    except TypeError as error:
        raise BuilderError(
            f"{entry.where}: builder {entry.builder}{inspect.signature(builder)} does not take the arguments "
            f"{sorted(arguments)}: {error}; 'device' is always given, the rest come from 'args'"
        ) from error
    program = builder(**arguments)
    if not isinstance(program, Program):
        raise BuilderError(
            f"{entry.where}: expected builder {entry.builder} to return a pytest_reinplace.Program, got "
            f"{type(program).__name__}"
        )
    if entry.ahead_of_time:
        ahead_of_time.check(entry, program)
    return program


def _builder(entry: Entry) -> Callable[..., Any]:
    module, _, name = entry.builder.partition(":")
    wrong = f"{entry.where}: builder {entry.builder!r}"
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise BuilderError(
            f"{wrong} cannot be imported: {error}; it is looked for on sys.path, beside the entry and in the "
            "rootdir"
        ) from error
    owner = f"module {module!r}"
    for part in name.split("."):
        if not hasattr(found, part):
            raise BuilderError(f"{wrong}: {owner} has no attribute {part!r}{nearest_attribute(part, found)}")
        found = getattr(found, part)
        owner = repr(found)
    if not callable(found):
        raise BuilderError(f"{wrong} is not callable, but {found!r}")
    return found  # type: ignore[no-any-return]
