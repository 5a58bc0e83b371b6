"""A corpus entry as a measured test: run on all sides, judged, held against its baselines."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..base import launch, progress
from ..compare.limit import exact
from ..measure import baseline, gate, turns
from ..measure.benchmark import effort, report, withdraw
from ..measure.result import Result
from ..measure.sides import DeviceLost, Measured, measured
from ..record.figures import Measurement
from ..record.record import MEASURED
from . import device, updating, verification
from .item_capture import attach, following, settings_of

if TYPE_CHECKING:
    from ..entry.entry import Entry, Preset
    from ..entry.verdict import EntryVerdict
    from .settings import Settings


_READ = pytest.StashKey[dict[Path, baseline.Baselines]]()


class GateFailure(Exception):
    """An entry costs more than it may. The message is the verdict, a line for each figure."""


def run(item: pytest.Item, entry: Entry, preset: Preset, pass_name: str, backend: str) -> EntryVerdict:
    """Measure an entry and hold it against what it may cost; returns the verdict on what it computes.

    Raises:
        GateFailure: a figure is over its limit, or a file of baselines is wrong.
        OutOfMemory: the device has not enough memory.
    """
    with _in_words(item):
        once = functools.partial(_measured, item, entry, preset, pass_name, backend)
        verdict, result = turns.run(preset.device, once)
    _hand_on(item, verdict, result)
    if result.is_right and result.ruling.excesses:
        verification.judge(item, verdict.graphs, f"pass {pass_name}, backend {backend}")
        raise GateFailure(_text(result))
    return verdict


def _measured(
    item: pytest.Item, entry: Entry, preset: Preset, pass_name: str, backend: str
) -> tuple[EntryVerdict, Result]:
    settings, slug = settings_of(item.config), _slug(preset.device, backend)
    folder, root = folder_of(entry, settings), item.config.rootpath
    known = _known(item, folder, slug, settings)
    paths = os.path.relpath(folder, root), os.path.relpath(entry.path, root)
    figures = functools.partial(Measurement, entry.name, *paths, slug, pass_name)
    benching = measured(
        entry,
        preset,
        pass_name,
        backend,
        root,
        effort=effort(item.config),
        alone=functools.partial(turns.exclusive, preset.device),
        progress=progress.of(item.config),
        pictured=settings.pictured,
        verified=settings.verify,
        following=following(settings),
    )
    with benching as found:
        ruling = _ruling(figures(found.sides), known, settings, lambda: figures(found.again()))
    without = {**preset.unrunnable, **found.failed}
    unrun = tuple(f"not run with {name}: {why}" for name, why in without.items())
    verdict = found.verdicts[-1]
    unbound = (f"no lower bound: {verdict.held.problem}",) if verdict.held.is_odd else ()
    remarks = (*unrun, *_wrong_elsewhere(found), *unbound, *ruling.remarks)
    ruling = dataclasses.replace(ruling, remarks=remarks)
    is_right = not verdict.problems() or updating.accepts(item, verdict)
    return verdict, Result(figures(found.sides, found.calls, found.copy_bandwidth), ruling, is_right)


def _slug(kind: str, backend: str) -> str:
    """Return which file of baselines is meant: graphs run node by node hold other bytes than kernels do."""
    slug: str = device.of(kind)["slug"]
    several = launch.processes()
    slug = slug if several == 1 else f"{slug}-x{several}"
    return slug if backend == "inductor" else f"{slug}-{backend}"


def folder_of(entry: Entry, settings: Settings) -> Path:
    """Return the folder of an entry's baselines."""
    return settings.baseline_dir or entry.path.parent / baseline.FOLDER


def _known(item: pytest.Item, folder: Path, slug: str, settings: Settings) -> baseline.Baselines:
    """Return the device's baselines; skip where others have some and this device none."""
    path = baseline.path_of(folder, slug)
    if path.exists():
        read = item.config.stash.setdefault(_READ, {})
        if path not in read:  # once for all entries: the file has every one of them
            read[path] = baseline.load(path)
        return read[path]
    if not settings.updates and settings.against is None and any(folder.glob("*.yaml")):
        where = os.path.relpath(item.path, item.config.invocation_params.dir)
        on = "" if settings.device is None else f" --reinplace-device={settings.device}"
        pytest.skip(
            f"no baselines for {slug} in {folder}; record them: pytest {where}{on} --reinplace-update"
        )
    return baseline.Baselines()


def _ruling(
    found: Measurement, known: baseline.Baselines, settings: Settings, again: gate.Again
) -> gate.Ruling:
    limits = settings.fail_on or exact()
    if settings.against is not None:
        if settings.against not in found.sides:
            return gate.Ruling()
        return gate.against_side(found, settings.against, limits, again)
    if settings.updates:
        return gate.Ruling()
    if found.entry not in known.entries:
        text = "no baseline: record it with --reinplace-update-new-only"
        return gate.unrecorded(text, is_limited=bool(settings.fail_on))
    return gate.against_baseline(
        found, known.entries[found.entry], limits, again, is_limited=bool(settings.fail_on)
    )


def _wrong_elsewhere(found: Measured) -> tuple[str, ...]:
    """Say that a pass which is not under test computes something else: its figures mean little then."""
    return tuple(
        f"with {verdict.pass_name}: {verdict.differences[0]}"
        for verdict in found.verdicts[:-1]
        if verdict.differences
    )


def _hand_on(item: pytest.Item, verdict: EntryVerdict, result: Result) -> None:
    attach(item, verdict.graphs)
    for metric, figure in result.measurement.tested.exact.items():
        if metric == "peak_bytes":  # the others are there already
            item.user_properties.append((f"reinplace_{metric}", figure))
    item.user_properties.append((MEASURED, json.dumps(result.to_dict(), sort_keys=True)))
    report(item, result.measurement)
    withdraw(item)


def _text(result: Result) -> str:
    found = result.measurement
    excesses, rest = result.ruling.excesses, result.ruling.remarks
    what, lines = ("costs more than it may", excesses) if result.ruling.is_recorded else (excesses[0], ())
    head = f"{found.entry} on {found.device}, pass {found.pass_name}: {what}"
    return "\n".join([head, *(f"  {line}" for line in (*lines, *rest))])


@contextlib.contextmanager
def _in_words(item: pytest.Item) -> Iterator[None]:
    """Say in words what ends one entry; the others go on."""
    try:
        yield
    except baseline.BaselineError as error:
        withdraw(item)
        raise GateFailure(str(error)) from None
    except DeviceLost as error:
        withdraw(item)
        raise GateFailure(
            f"the device is lost: {error}; nothing more can run on it in this process. If a pass causes "
            "this, name the pass under 'unrunnable' in the entry"
        ) from None
    except BaseException:
        withdraw(item)
        raise
