"""Why corpus entries hold more than eager does, with our pass on a CPU: read from ``above_eager.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_FILE = Path(__file__).with_suffix(".yaml")


def causes() -> dict[str, str]:
    """Return what is behind several entries, by the name that reasons begin with."""
    return {name: " ".join(text.split()) for name, text in _read()["causes"].items()}


def reasons() -> dict[str, str]:
    """Return the reason of each entry: the name of a cause, and what it is there."""
    return {name: " ".join(text.split()) for name, text in _read()["entries"].items()}


def _read() -> Any:
    return yaml.safe_load(_FILE.read_text("utf-8"))
