"""``--reinplace-update``: what was measured becomes the baselines of its device."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..base import _torch
from ..entry.entry import SUFFIX, EntryError, load
from . import baseline
from .baseline import Baselines
from .result import Result, results_of

if TYPE_CHECKING:
    from ..record.record import Record

_ERROR = "ERROR"


def recorded(records: Iterable[Record], config: pytest.Config, only_new: bool) -> list[str]:
    """Write the baselines of every device that was measured; return what changed, a line each.

    What failed is not recorded, nor, with ``only_new``, what has a baseline. Where a file cannot be written,
    what was there before still is, and the others are written all the same.
    """
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results_of(records):
        groups[result.measurement.folder, result.measurement.device].append(result)
    lines = []
    for (folder, device), group in sorted(groups.items()):
        path = baseline.path_of(config.rootpath / folder, device)
        lines.append(f"{folder}/{path.name}:")
        try:
            lines += list(_record(path, device, group, config, only_new)) or ["  nothing changed"]
        except (OSError, ValueError, baseline.BaselineError) as error:
            lines.append(f"  {_ERROR}: not recorded: {error}")
    return lines


def failed(lines: Iterable[str]) -> bool:
    """Return whether a file could not be written."""
    return any(line.strip().startswith(_ERROR) for line in lines)


def _record(
    path: Path, device: str, results: list[Result], config: pytest.Config, only_new: bool
) -> Iterator[str]:
    old = baseline.load(path) if path.exists() else Baselines()
    entries, taken = dict(old.entries), dict(old.taken)
    for result in results:
        found = result.measurement
        name = found.entry
        if not result.is_right:
            yield f"  {name}: not recorded: it failed"
        elif name not in entries or not only_new:
            new = baseline.recorded(old, found)
            changed = list(baseline.changes(entries.get(name, {}), new))
            entries[name], taken[name] = new, _taken(config.rootpath)
            yield from (f"  {name}: {change}" for change in changed)
    for name in sorted(_gone(entries, results, path, config)):
        del entries[name]
        taken.pop(name, None)
        yield f"  {name}: removed: the entry is gone"
    baseline.write(path, device, Baselines(entries, taken))


def _taken(root: Path) -> dict[str, str]:
    """Return what a measurement was taken with."""
    versions = {name: _torch.version(name) for name in ("pytest-reinplace", "torch", "triton")}
    return {name: text for name, text in {**versions, "commit": _commit(root)}.items() if text}


def _commit(root: Path) -> str | None:
    """Return the commit that is checked out, with ``+`` where the tree differs; ``None`` outside of git."""
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True, timeout=10)
    return done.stdout.strip()


def _gone(names: Iterable[str], results: list[Result], path: Path, config: pytest.Config) -> set[str]:
    """Return the names without an entry, where the whole of what the file is for has run."""
    if not _is_full(path.parent, config):
        return set()
    known = {result.measurement.entry for result in results}
    for folder in {(config.rootpath / result.measurement.source).parent for result in results}:
        for file in folder.glob(f"*{SUFFIX}"):
            try:
                known.add(load(file).name)
            except EntryError:
                return set()  # it may be any of them
    return set(names) - known


def _is_full(folder: Path, config: pytest.Config) -> bool:
    """Return whether nothing that may have a baseline in the folder was left out by the command line."""
    option = config.option
    narrowed = (
        option.keyword,
        option.markexpr,
        getattr(option, "deselect", None),
        getattr(option, "lf", None),
    )
    if any(narrowed):
        return False
    if config.args_source is not config.ArgsSource.ARGS:
        return True
    if folder.name != baseline.FOLDER:  # shared by entries of several folders
        return False
    given = [(config.invocation_params.dir / arg).resolve() for arg in config.args if "::" not in arg]
    return any(arg.is_dir() and folder.resolve().is_relative_to(arg) for arg in given)
