"""Why corpus entries hold more than eager does, with our pass: read from a yaml file for each device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_FILES = {
    "cpu": Path(__file__).with_suffix(".yaml"),
    "cuda": Path(__file__).with_name("above_eager_cuda.yaml"),
}


def causes(device: str) -> dict[str, str]:
    """Return what is behind several entries, by the name that reasons begin with."""
    return {name: " ".join(text.split()) for name, text in _read(device)["causes"].items()}


def reasons(device: str) -> dict[str, str]:
    """Return the reason of each entry: the name of a cause, and what it is there."""
    return {name: " ".join(text.split()) for name, text in _read(device)["entries"].items()}


def _read(device: str) -> Any:
    return yaml.safe_load(_FILES[device].read_text("utf-8"))
