"""One corpus entry, as its ``*.reinplace.yaml`` file describes it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.choices import BACKENDS, DEVICES, PASSES
from ..base.nearest import nearest
from ..base.tolerance import Tolerance
from ..base.wording import path_of
from .located import EntryError, Located, read

SUFFIX = ".reinplace.yaml"

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_OPTIONAL = (
    "ahead_of_time",
    "args",
    "backend",
    "copies",
    "description",
    "dynamic",
    "fullgraph",
    "grad",
    "max_peak_over_bound",
    "name",
    "options",
    "presets",
    "requires",
    "source",
    "tags",
    "tolerance",
    "unrunnable",
)
_BOOLEAN = ("ahead_of_time", "dynamic", "fullgraph", "grad")
# What a program that is compiled ahead of time cannot have, and why.
_NOT_AHEAD = {
    "dynamic": (True, "it is exported with the sizes that it is called with"),
    "fullgraph": (False, "an exported program is one graph"),
    "grad": (True, "a library of AOTInductor has no backward"),
}
_RATIO = "max_peak_over_bound"
_PRESET = ("args", "backend", "clones", "copies", _RATIO, "tolerance", "unrunnable")
# What there is only where Inductor makes programs of what it lowers.
_OF_INDUCTOR = ("copies", _RATIO)


@dataclasses.dataclass(frozen=True, slots=True)
class Preset:
    """An entry for one device.

    Args:
        device: ``"cpu"`` or ``"cuda"``.
        args: keyword arguments of the builder, beside ``device``.
        backend: ``"graph"`` or ``"inductor"``.
        clones: for each pass under test, the labels that are expected to stay clones.
        tolerance: allowed difference from eager.
        unrunnable: for each pass with which the program must not be run, why: it would take the device down.
        copies: for each pass under test, the labels of the copies that lowering is expected to add. They are
            held against what came where the backend is ``inductor``.
        max_peak_over_bound: how many times its lower bound a call may hold, with any pass or for each; no
            limit where the backend is ``graph``.
    """

    device: str
    args: Mapping[str, Any]
    backend: str
    clones: Mapping[str, tuple[str, ...]]
    tolerance: Tolerance
    unrunnable: Mapping[str, str] = dataclasses.field(default_factory=dict)
    copies: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    max_peak_over_bound: float | Mapping[str, float] | None = None

    def peak_over_bound(self, pass_name: str) -> float | None:
        """Return how many times its lower bound a call may hold with a pass; ``None`` without a limit."""
        found = self.max_peak_over_bound
        return found.get(pass_name) if isinstance(found, Mapping) else found


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A program of a corpus, and the reinplacing that is expected of it.

    Args:
        path: the file.
        name: unique within its folder; the file's name unless given.
        builder: ``"package.module:function"``, called as ``function(device=..., **args)``; returns a
            :class:`~pytest_reinplace.program.Program`.
        presets: the entry for each device that it runs on.
        description: what the program is.
        source: where it comes from.
        tags: words to select it by; each becomes a pytest keyword.
        requires: packages that must be importable, else the entry is skipped.
        options: Inductor configuration while it compiles.
        grad: whether the backward pass runs as well.
        dynamic: whether it is compiled with dynamic shapes.
        fullgraph: whether a graph break is an error.
        ahead_of_time: whether it is exported and compiled to a library by AOTInductor, instead of by
            ``torch.compile`` when it is called.
    """

    path: Path
    name: str
    builder: str
    presets: Mapping[str, Preset]
    description: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    grad: bool = False
    dynamic: bool = False
    fullgraph: bool = True
    ahead_of_time: bool = False

    @property
    def where(self) -> str:
        """The file for the reader of a message."""
        return path_of(self.path)

    def on(self, device: str) -> Preset | None:
        """Return the preset for a device, ``None`` where the entry has none."""
        return next((preset for preset in self.presets.values() if preset.device == device), None)


def load(path: Path) -> Entry:
    """Read and check one entry; raises :class:`EntryError` naming file and line."""
    document = read(path)
    keys = document.record(("builder", "clones"), _OPTIONAL)
    return Entry(
        path=path,
        name=_name(keys["name"]) if "name" in keys else path.name.removesuffix(SUFFIX),
        builder=_reference(keys["builder"]),
        presets=_presets(keys),
        description=keys["description"].string() if "description" in keys else "",
        source=keys["source"].string() if "source" in keys else "",
        tags=keys["tags"].strings() if "tags" in keys else (),
        requires=keys["requires"].strings() if "requires" in keys else (),
        options=_plain_mapping(keys.get("options")),
        **_booleans(keys),
    )


def _booleans(keys: Mapping[str, Located]) -> dict[str, bool]:
    found = {name: keys[name].boolean() for name in _BOOLEAN if name in keys}
    if found.get("ahead_of_time"):
        for name, (refused, why) in _NOT_AHEAD.items():
            if found.get(name) is refused:
                wrong = str(refused).lower()
                raise keys[name].error(f"'{name}: {wrong}' does not go with 'ahead_of_time: true': {why}")
        _refuse_ratio(keys)
    return found


def _refuse_ratio(keys: Mapping[str, Located]) -> None:
    """Refuse a limit of what a library of AOTInductor holds: nobody can follow its programs."""
    presets = keys["presets"].mapping().values() if "presets" in keys else ()
    for record in (keys, *(one.mapping() for one in presets)):
        if _RATIO in record:
            raise record[_RATIO].error(
                f"'{_RATIO}' does not go with 'ahead_of_time: true': no lower bound of a library is known"
            )


def _name(item: Located) -> str:
    """Return a name that pytest may print as it is: on a terminal control codes do what they say."""
    name = item.string()
    if not name.isprintable():
        raise item.expected("one line without control codes")
    return name


def _reference(item: Located) -> str:
    what = "a function as 'package.module:function'"
    value = item.string(what)
    if not _REFERENCE.fullmatch(value):
        raise item.expected(what)
    return value


def _presets(keys: Mapping[str, Located]) -> dict[str, Preset]:
    """Return one preset for each device named, or for every device when none is."""
    common = {name: keys[name] for name in _PRESET if name in keys}
    if "presets" not in keys:
        return {device: _preset(device, common, {}) for device in DEVICES}
    named = keys["presets"].mapping("a mapping from device to preset")
    for device, item in named.items():
        if device not in DEVICES:
            raise item.error(f"unknown device {item.key!r}{nearest(device, DEVICES)}")
    if not named:
        raise keys["presets"].expected("a mapping with at least one of cpu, cuda")
    return {device: _preset(device, common, item.record((), _PRESET)) for device, item in named.items()}


def _preset(device: str, common: Mapping[str, Located], own: Mapping[str, Located]) -> Preset:
    """Return a preset: its own keys over those of the whole entry; ``args`` and ``clones`` are merged."""
    both = {**common, **own}
    backend = both["backend"].choice(sorted(BACKENDS)) if "backend" in both else _default_backend(device)
    for name in _OF_INDUCTOR:
        if name in own and backend == "graph":
            raise own[name].error(
                f"'{name}' does not go with backend graph, which lowers nothing; add 'backend: inductor'"
            )
    return Preset(
        device=device,
        args={**_args(common.get("args")), **_args(own.get("args"))},
        backend=backend,
        clones={**_labels(common.get("clones")), **_labels(own.get("clones"))},
        copies={**_labels(common.get("copies")), **_labels(own.get("copies"))},
        max_peak_over_bound=_ratio(both[_RATIO]) if _RATIO in both else None,
        tolerance=_tolerance(both["tolerance"]) if "tolerance" in both else Tolerance(),
        unrunnable={**_reasons(common.get("unrunnable")), **_reasons(own.get("unrunnable"))},
    )


def _default_backend(device: str) -> str:
    return "graph" if device == "cpu" else "inductor"


def _plain_mapping(item: Located | None) -> dict[str, Any]:
    return {key: value.plain() for key, value in item.mapping().items()} if item is not None else {}


def _args(item: Located | None) -> dict[str, Any]:
    args = _plain_mapping(item)
    if item is not None and "device" in args:
        raise item.mapping()["device"].error("'device' is given by the preset; remove it from args")
    return args


def _labels(item: Located | None) -> dict[str, tuple[str, ...]]:
    if item is None:
        return {}
    passes = _by_pass(item, "a mapping from pass to list of labels")
    return {name: labels.strings() for name, labels in passes.items()}


def _ratio(item: Located) -> float | dict[str, float]:
    if not isinstance(item.value, dict):
        return _at_least_one(item)
    passes = _by_pass(item, "a mapping from pass to number")
    return {name: _at_least_one(value) for name, value in passes.items()}


def _at_least_one(item: Located) -> float:
    value = item.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < float("inf"):
        raise item.expected("a finite number of at least 1: no call holds less than its lower bound")
    return float(value)


def _reasons(item: Located | None) -> dict[str, str]:
    passes = {} if item is None else _by_pass(item, "a mapping from pass to the reason")
    return {name: reason.string("the reason, a text") for name, reason in passes.items()}


def _by_pass(item: Located, what: str) -> dict[str, Located]:
    found = item.mapping(what)
    for name, value in found.items():
        if name not in PASSES and not _REFERENCE.fullmatch(name):
            raise value.error(
                f"unknown pass {value.key!r}{nearest(name, sorted(PASSES))} (or 'package.module:attribute')"
            )
    return found


def _tolerance(item: Located) -> Tolerance:
    if not isinstance(item.value, dict):
        return Tolerance(item.number(), item.number())
    keys = item.record((), ("atol", "integers", "rtol"))
    return Tolerance(**{name: value.number() for name, value in keys.items()})


__all__ = ["SUFFIX", "Entry", "EntryError", "Preset", "load"]
