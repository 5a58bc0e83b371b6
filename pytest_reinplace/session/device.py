"""What a session ran on: our answer, and whose answer the report takes."""

from __future__ import annotations

import json
import platform
import re
import sys
from typing import Any

import pytest

from ..base import launch
from . import hooks

# What a worker of pytest-xdist hands to its controller: (what it ran on, why that is not known) as JSON.
_OUTPUT = "reinplace_device"
_WORKERS = pytest.StashKey[dict[str, str]]()
_LONGEST = 64
_MAKERS = ("nvidia", "geforce", "tesla")


def default() -> dict[str, Any] | None:
    """Return the GPU's name where torch sees one, else the kind of CPU; ``None`` while torch is not imported.

    Nothing was compiled then, and importing torch to say where would take seconds. The CPU's model is left
    out: what is cloned does not depend on it, and shards on several machines are merged.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    return of("cuda" if torch.cuda.is_available() else "cpu")


def of(kind: str) -> dict[str, Any]:
    """Return what ``"cpu"`` or ``"cuda"`` is here, with the slug by which its baselines are filed."""
    if kind == "cpu":
        return {"type": "cpu", "name": f"cpu {platform.machine()}", "slug": slug(f"cpu {platform.machine()}")}
    import torch

    name, (major, minor) = torch.cuda.get_device_name(), torch.cuda.get_device_capability()
    model = " ".join(word for word in name.split() if word.lower() not in _MAKERS)
    return {"type": "cuda", "name": name, "slug": slug(f"cuda sm{major}{minor} {model}".replace(" ", "-"))}


def pin(config: pytest.Config) -> None:
    """Let a process have a GPU to itself, as far as there are enough: its number's own.

    Processes are numbered by ``torchrun`` or as workers of pytest-xdist.
    """
    import torch

    if launch.processes() > 1:
        torch.cuda.set_device(launch.local_rank() % torch.cuda.device_count())
        return
    worker = getattr(config, "workerinput", {}).get("workerid", "")
    number, count = worker.removeprefix("gw"), torch.cuda.device_count()
    if number.isdecimal() and count:
        torch.cuda.set_device(int(number) % count)


def slug(name: str) -> str:
    """Return a device's name as part of a file's name: ``"NVIDIA H200"`` is ``"nvidia-h200"``."""
    return re.sub(r"[^a-z0-9_.]+", "-", name.lower())[:_LONGEST].strip("-.")


def known(config: pytest.Config) -> dict[str, Any] | None:
    """Return what the session ran on, with its ``slug``; ``None`` where nobody knows.

    The workers of pytest-xdist know better than their controller, which imports no torch.

    Raises:
        hooks.HookError: a plugin's answer cannot be used.
    """
    told = config.stash.get(_WORKERS, {})
    for worker in sorted(told, key=lambda name: (len(name), name)):  # gw2 comes before gw10
        info, problem = json.loads(told[worker])
        if problem:
            raise hooks.HookError(problem)
        if info is not None:
            return _with_slug(info)
    info = hooks.device_info(config)
    return None if info is None else _with_slug(info)


def _with_slug(info: dict[str, Any]) -> dict[str, Any]:
    own = info.get("slug")
    return {**info, "slug": slug(own if isinstance(own, str) and slug(own) else info["name"])}


def hand_on(config: pytest.Config) -> None:
    """Let a worker tell its controller what it ran on."""
    info, problem = None, ""
    try:
        info = hooks.device_info(config)
    except hooks.HookError as error:
        problem = str(error)
    # workeroutput is what pytest-xdist adds to the configuration of a worker.
    config.workeroutput[_OUTPUT] = json.dumps([info, problem])  # type: ignore[attr-defined]


def take(config: pytest.Config, worker: str, output: dict[str, Any]) -> None:
    """Let the controller note what a worker told at its end."""
    if _OUTPUT in output:
        config.stash.setdefault(_WORKERS, {})[worker] = output[_OUTPUT]
