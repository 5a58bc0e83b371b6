"""Corpus entries as pytest items: one for each pass that judges a ``*.reinplace.yaml`` file."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..base import progress, wording
from ..entry.entry import SUFFIX, Entry, EntryError, Preset, load
from . import device, updating, verification
from .item_capture import NO_DEVICE, OWN, attach, following, settings_of

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, TerminalRepr

    from ..entry.verdict import EntryVerdict


DEFAULT_PASS = "exact"
"""Judges an entry that lists clones for no pass: it tells what the program can cost at best."""


class EntryFailure(Exception):
    """An entry is not as expected; carries the verdict.

    Args:
        verdict: what was found.
        advice: a last line, empty where there is none.
    """

    def __init__(self, verdict: EntryVerdict, advice: str = "") -> None:
        super().__init__("\n".join(filter(None, [str(verdict), advice])))
        self.verdict = verdict


def collect_file(file_path: Path, parent: pytest.Collector) -> EntryFile | None:
    """Return the collector of a corpus entry, ``None`` for any other file."""
    if not file_path.name.endswith(SUFFIX):
        return None
    return EntryFile.from_parent(parent, path=file_path)


class EntryFile(pytest.File):
    """A file that holds one entry."""

    def collect(self) -> Iterator[EntryItem]:
        """Yield the entry, once for each pass; a wrong entry is a collection error naming file and line."""
        entry = load(self.path)
        measures = settings_of(self.config).measures and self.config.pluginmanager.hasplugin("benchmark")
        called = _benchmarked if measures else _plain
        passes = self._passes(entry)
        for pass_name in passes:
            name = entry.name if len(passes) == 1 else f"{entry.name}[{pass_name}]"
            yield EntryItem.from_parent(self, name=name, entry=entry, pass_name=pass_name, callobj=called)

    def _passes(self, entry: Entry) -> tuple[str, ...]:
        """Return the pass of the options; without one, those that the entry lists clones for.

        What is measured is measured with one pass: the others are its sides.
        """
        settings = settings_of(self.config)
        if settings.pass_name is not None:
            return (settings.pass_name,)
        preset = entry.presets.get(settings.device or "cpu")
        named = () if preset is None or settings.measures else tuple(preset.clones)
        return named or (DEFAULT_PASS,)

    def repr_failure(self, excinfo: ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """Show a wrong entry as its message alone."""
        if isinstance(excinfo.value, EntryError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


def _plain() -> None:
    """Stand for an entry that needs no fixture: pytest reads from a function which ones to set up."""


def _benchmarked(benchmark: object) -> None:
    """Stand for an entry that is measured, which is a benchmark to pytest-benchmark and all its options."""


class EntryItem(pytest.Function):
    """One entry: it passes when it computes what eager does and has the expected clone list.

    Where entries are measured, it must cost no more than is recorded, too.
    """

    def __init__(self, *, entry: Entry, pass_name: str = DEFAULT_PASS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.entry = entry
        self.pass_name = pass_name
        self.stash[OWN] = True
        if "benchmark" in self.fixturenames:
            from ..measure.benchmark import replaying

            replaying(self)
        self.device: str = self._option("device", "cpu")
        self.extra_keyword_matches.update(entry.tags)
        for reason in self._obstacles():
            self.add_marker(pytest.mark.skip(reason))

    def _option(self, name: str, default: str) -> str:
        value = self.config.getoption(f"reinplace_{name}", default=None)
        return str(value) if value is not None else default

    def _obstacles(self) -> Iterator[str]:
        """Yield why the entry cannot run here, as far as can be told without importing anything."""
        for package in self.entry.requires:
            if not _installed(package):
                yield f"package {package!r} is not installed"
        if self.device not in self.entry.presets:
            yield f"no preset for {self.device}, only for {', '.join(self.entry.presets)}"

    def runtest(self) -> None:
        """Run the entry; it is skipped where a package, its preset or the device is missing."""
        preset = self.entry.presets[self._device()]
        pass_name = self.pass_name
        if pass_name in preset.unrunnable:
            pytest.skip(f"not run with pass {pass_name}: {preset.unrunnable[pass_name]}")
        if settings_of(self.config).measures:
            from . import entry_test

            backend = self._option("backend", "inductor")
            verdict = entry_test.run(self, self.entry, preset, pass_name, backend)
        else:
            verdict, backend = self._run(preset, pass_name)
        if verdict.problems() and not updating.accepts(self, verdict):
            is_told = settings_of(self.config).rewrites  # by the section on expected clones
            raise EntryFailure(
                verdict, wording.UPDATE if verdict.differs_in_clones_only and not is_told else ""
            )
        verification.judge(self, verdict.graphs, f"pass {pass_name}, backend {backend}")

    def _run(self, preset: Preset, pass_name: str) -> tuple[EntryVerdict, str]:
        from ..entry.run import run
        from ..measure import turns

        backend = self._option("backend", preset.backend)
        settings = settings_of(self.config)
        once = functools.partial(
            run,
            self.entry,
            preset,
            pass_name,
            backend,
            self.config.rootpath,
            pictured=settings.pictured,
            verified=settings.verify,
            progress=progress.of(self.config),
            following=following(settings),
        )
        verdict = turns.run(preset.device, once)
        attach(self, verdict.graphs)
        return verdict, backend

    def _device(self) -> str:
        """Return the device to run on; user Triton kernels run on the GPU wherever there is one.

        On such a machine Triton launches kernels there, and none of them takes a CPU tensor.
        """
        import torch

        has_gpu = torch.cuda.is_available()
        if self.device == "cuda" and not has_gpu:
            pytest.skip(NO_DEVICE)
        if has_gpu:
            device.pin(self.config)
        launches = "triton" in self.entry.requires and "cuda" in self.entry.presets
        return "cuda" if launches and has_gpu else self.device

    def add_report_section(self, when: str, key: str, content: str) -> None:
        """Add captured output, without the empty records of torch's trace log: a compile makes hundreds."""
        if key == "log":
            content = "\n".join(line for line in content.splitlines() if "torch.__trace:" not in line)
        if content:
            super().add_report_section(when, key, content)

    def repr_failure(self, excinfo: ExceptionInfo[BaseException]) -> str | TerminalRepr:  # type: ignore[override]
        """Show a verdict, or a wrong entry, as its text alone, and anything else as pytest does."""
        from ..call.program import BuilderError
        from ..call.twin import TwinError
        from ..measure.sides import OutOfMemory
        from .entry_test import GateFailure

        if isinstance(excinfo.value, EntryFailure | BuilderError | GateFailure | OutOfMemory | TwinError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the item is."""
        return self.path, 0, self.name


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # a parent of a dotted name is missing
        return False
