"""An entry eagerly, with Inductor's pass and with the pass under test: run, judged and measured in turn."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import _torch
from ..base.progress import Progress
from ..call import call, peak
from ..call.program import Program
from ..call.twin import Run, Twin, differences, twin
from ..capture import install, pass_under_test, triton_cpu
from ..capture.capture import Capture
from ..copies.lowering import Lowering
from ..entry import ahead_of_time
from ..entry.held import held
from ..entry.run import built, called, configured, importable, plainly, strided
from ..entry.verdict import EntryVerdict
from ..lowered.calls import Calls
from ..record.figures import EAGER, STOCK, Side
from ..record.held import figures_of
from . import bandwidth, clock, group

if TYPE_CHECKING:
    from ..capture.captured import CapturedGraph
    from ..capture.followed import Following
    from ..entry.entry import Entry, Preset

Alone = Callable[[], contextlib.AbstractContextManager[None]]

_WARM = 2
_ROUNDS = (15, 51)


class OutOfMemory(Exception):
    """An entry needs more memory than the device has."""


class DeviceLost(Exception):
    """A kernel has ended the process's use of its GPU: nothing can run there any more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure.

    Args:
        seconds: about how long all timings of an entry take together; ``0``: nothing is timed.
        rounds: the fewest rounds, whatever they take.
    """

    seconds: float = 3.0
    rounds: int = _ROUNDS[0]


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """What measuring an entry gave.

    Args:
        verdicts: one for each pass, that of the pass under test last.
        sides: by name, eager first.
        calls: how many calls a round timed at once.
        again: compiles and times all sides anew and returns them; to be called before the program is given
            up.
        copy_bandwidth: bytes a second; ``None`` where nothing was timed.
        failed: the sides that could not be compiled, with the reason.
    """

    verdicts: tuple[EntryVerdict, ...]
    sides: Mapping[str, Side]
    calls: int
    again: Callable[[], Mapping[str, Side]]
    copy_bandwidth: float | None
    failed: Mapping[str, str]


@contextlib.contextmanager
def measured(
    entry: Entry,
    preset: Preset,
    pass_name: str,
    backend: str,
    rootdir: Path,
    *,
    effort: Effort = Effort(),
    alone: Alone = contextlib.nullcontext,
    progress: Progress | None = None,
    pictured: bool = False,
    verified: bool = False,
    following: Following | None = None,
) -> Iterator[Measured]:
    """Build an entry and measure it; it can be timed again until the block ends.

    Args:
        entry: the entry.
        preset: the preset of it to run.
        pass_name: the pass under test.
        backend: ``"inductor"``; ``"graph"`` runs graphs node by node, whose times say little.
        rootdir: where builders are looked for, too.
        effort: how long to measure.
        alone: makes the block inside which nobody else measures on the device; compiling is outside of it,
            but for the timings by which kernels are chosen. It may be entered again inside.
        progress: is told what is compiled and measured.
        pictured: whether the graphs of the pass under test are drawn.
        verified: whether these are checked against the contract.
        following: keeps the ledgers of what passes and rules do to them.

    Raises:
        OutOfMemory: the device has not enough memory.
        DeviceLost: a kernel of this entry, or of one before it in the process, has made the device unusable.
        BuilderError: the builder is wrong.
        TwinError: the program cannot be copied for the eager run.
    """
    import torch

    torch.compiler.reset()
    bench = None
    try:
        with importable(entry.path.parent, rootdir), triton_cpu.working(), built(entry, preset) as program:
            bench = _Bench(entry, preset, program, backend, progress or Progress(), alone)
            del program  # its tensors live no longer than the bench
            for name in (one for one in dict.fromkeys((STOCK, pass_name)) if one not in preset.unrunnable):
                is_last = name == pass_name
                asked = (pictured, verified, following) if is_last else (False, False, None)
                with contextlib.nullcontext() if is_last else bench.surviving(name):
                    bench.compile(name, *asked)
            yield bench.measured(effort)
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(f"{entry.name} on {preset.device}: {str(error).splitlines()[0]}") from None
    except torch.AcceleratorError as error:
        raise DeviceLost(f"{entry.name} on {preset.device}: {str(error).splitlines()[0]}") from error
    finally:
        del bench
        torch.compiler.reset()
        gc.collect()
        if preset.device == "cuda":
            with contextlib.suppress(torch.AcceleratorError):
                torch.cuda.empty_cache()


class _Bench:
    """A program with all its compiled forms."""

    def __init__(
        self, entry: Entry, preset: Preset, program: Program, backend: str, progress: Progress, alone: Alone
    ) -> None:
        self._entry, self._preset, self._backend, self._progress = entry, preset, backend, progress
        self._alone = alone
        self._pair: Twin = twin(program)
        self._state = strided(self._pair)
        self._programs = Calls() if backend == "inductor" and not entry.ahead_of_time else None
        self._eager: Run | None = self._pair.after_eager(called(self._pair.eager.fn, self._pair.eager, entry))
        self._calls: dict[str, Callable[[], object]] = {EAGER: lambda: plainly(program.fn, program, entry)}
        self._verdicts: dict[str, EntryVerdict] = {}
        self._failed: dict[str, str] = {}
        self._facts: dict[str, dict[str, Any]] = {EAGER: {}}

    @contextlib.contextmanager
    def surviving(self, name: str) -> Iterator[None]:
        """Go on without a side that is not under test, and that its compiler fails on; note why."""
        import torch

        try:
            yield
        except (torch.OutOfMemoryError, torch.AcceleratorError):
            raise
        except Exception as error:  # noqa: BLE001 - a compiler may raise anything
            words = " ".join(str(error).split())
            self._failed[name] = f"{type(error).__name__}: {words[:200]}"

    def compile(self, name: str, pictured: bool, verified: bool, following: Following | None) -> None:
        """Compile with a pass, hold the first call against eager, and call until nothing is compiled."""
        capturing = Capture(
            name,
            self._backend,
            progress=self._progress,
            pictured=pictured,
            verified=verified,
            following=following,
            onlooker=Lowering,
            forgets=False,
            bounded=True,
            asker="entry",
        )
        graphs: list[CapturedGraph] = []

        def judge(result: object) -> None:
            graphs.extend(capturing.checked_graphs)
            self._judge(name, tuple(graphs), result)

        lowering = self._programs.lowering() if self._programs else contextlib.nullcontext()
        with _torch.counting_moved_bytes() as moved, lowering:
            taken = self._compiled(name, capturing, judge)
        clones = [o for graph in graphs for o in graph.report.outcomes if not o.reinplaced]
        self._facts[name] = {
            "clones": len(clones),
            "clone_bytes": sum(outcome.nbytes for outcome in clones),
            "compile_seconds": taken,
            "moved_bytes": None if self._entry.ahead_of_time else moved() or None,  # it counts no constants
            "least_bytes": sum(graph.least_bytes for graph in graphs) or None,
        }

    def _compiled(self, name: str, capture: Capture, take: Callable[[object], None]) -> float:
        """Compile under a capture, call until nothing is compiled; returns the first call's seconds.

        Args:
            name: the pass.
            capture: the capture.
            take: is given what the first call returned.
        """
        entry, program = self._entry, self._pair.program
        self._state.restore()
        with configured(entry), self._tuning() as waited, capture:
            fast = self._compiler(name)(program.fn)
            start = time.perf_counter()
            result = called(fast, program, entry)
            taken = time.perf_counter() - start - waited()
            take(result)
            del result
            with self._alone():
                for _ in range(_WARM):
                    self._state.restore()
                    called(fast, program, entry)
        self._calls[name] = functools.partial(plainly, fast, program, entry)
        return taken

    def _compiler(self, name: str) -> ahead_of_time.Compiler:
        entry = self._entry
        just_in_time = functools.partial(
            call.compiled, fullgraph=entry.fullgraph, dynamic=entry.dynamic or None, options=_apart(name)
        )
        return ahead_of_time.chosen(entry, self._backend, just_in_time)

    def _tuning(self) -> contextlib.AbstractContextManager[Callable[[], float]]:
        """Return a context in which kernels are chosen undisturbed; it gives the seconds that this waited."""
        if self._preset.device == "cuda" and self._backend == "inductor":
            return _torch.tuning_in(self._alone)
        return contextlib.nullcontext(lambda: 0.0)

    def _judge(self, name: str, graphs: tuple[CapturedGraph, ...], result: object) -> None:
        assert self._eager is not None
        found = tuple(differences(self._eager, self._pair.after_compiled(result), self._preset.tolerance))
        self._verdicts[name] = EntryVerdict(self._entry, self._preset, name, self._backend, graphs, found)

    def measured(self, effort: Effort) -> Measured:
        """Take peaks and times of all sides."""
        self._eager = None
        program = self._pair.program
        self._pair = Twin(program, program, ())  # the eager copy has done its work
        self._state.forget_unchanged()
        device = self._preset.device
        with self._alone():
            for name, one in self._calls.items():
                self._state.restore()
                self._facts[name]["peak_bytes"] = peak.measured(one, device)[1]
            self._follow()
        if not effort.seconds:
            sides = {name: Side(name, times=(), **facts) for name, facts in self._facts.items()}
            return Measured((*self._verdicts.values(),), sides, 0, lambda: sides, None, self._failed)
        with self._alone():
            calls, rounds = group.agreed(*self._size(effort))
            bandwidth.of_copy(device)
        copying, first = bandwidth.of_copy(device), self._timed(calls, rounds)
        again = functools.partial(self._anew, calls, rounds)
        return Measured((*self._verdicts.values(),), first, calls, again, copying, self._failed)

    def _follow(self) -> None:
        """Note what the programs of the pass under test hold, and must, before anything is timed."""
        if self._programs is None:
            return
        *_, name = self._calls
        found = held(self._programs, self._calls[name], self._state.restore, self._preset.device)
        self._programs = None  # it knows constants of the programs
        self._verdicts[name] = dataclasses.replace(self._verdicts[name], held=found)
        memory = [] if found.memory is None else [found.memory.figures()]
        self._facts[name].update(figures_of(memory), lower_bound=found.bound)

    def _anew(self, calls: int, rounds: int) -> dict[str, Side]:
        """Compile every pass's side anew, and time all sides.

        Which kernels a compilation chose by timing, and where its buffers came to lie, is luck: what was
        unlucky once would be as slow each time it is measured again.
        """
        import torch

        torch.compiler.reset()
        _torch.forget_kernels()
        names = [name for name in self._calls if name != EAGER]
        for name in names:
            del self._calls[name]
        gc.collect()
        if self._preset.device == "cuda":
            torch.cuda.empty_cache()
        for name in names:
            capture = Capture(name, self._backend, progress=self._progress, forgets=False)
            self._compiled(name, capture, lambda _: None)
        return self._timed(calls, rounds)

    def _size(self, effort: Effort) -> tuple[int, int]:
        """Return how many calls a round takes, and how many rounds."""
        device, taken = self._preset.device, {}
        for name, one in self._calls.items():
            self._state.restore()
            taken[name] = min(clock.seconds(one, 1, device) for _ in range(2))
        calls = clock.calls_for(min(taken.values()))
        fitting = int(effort.seconds / (sum(taken.values()) * calls))
        return calls, min(max(fitting, effort.rounds), max(_ROUNDS[1], effort.rounds))

    def _timed(self, calls: int, rounds: int) -> dict[str, Side]:
        import torch

        device = self._preset.device
        fixed: Any = torch.compiler.set_stance
        with self._alone(), self._progress.measuring(rounds) as at, fixed("fail_on_recompile"):
            own = clock.interleaved(self._calls, device, calls, rounds, self._state.restore, at)
        times = group.slowest(own)
        return {name: Side(name, times=times[name], **self._facts[name]) for name in times}


def _apart(name: str) -> dict[str, Any] | None:
    """Return the options that a pass needs anyway: by them Dynamo keeps apart what two passes compile.

    Without, frames behind a graph break would be compiled for the first pass and called by both.
    """
    options = install.options(pass_under_test.find(name), {})
    del options["force_disable_caches"]  # no option that torch.compile takes; a capture sets it by itself
    return options or None
