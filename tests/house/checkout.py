"""The checkout that the house tests look at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Folder in the checkout -> the package it is imported as.
PACKAGES = {
    "pytest_reinplace": "pytest_reinplace",
    "passes": "pytest_reinplace.passes",
    "corpus": "pytest_reinplace.corpus",
}


# Beginnings of the names of variables that are about the run outside.
_OUTSIDE = ("PYTEST_", "REINPLACE_", "PYTHONSAFEPATH", "CI", "BUILD_NUMBER", "FORCE_COLOR", "PY_COLORS")


def modules(folder: str) -> list[Path]:
    """Return the Python files of one of our folders, its sub-packages included."""
    return sorted(p for p in (ROOT / folder).rglob("*.py") if "__pycache__" not in p.parts)


def python(*args: str, cwd: Path, safe_path: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in ``cwd`` and return what it said; the exit status is the caller's to check.

    ``safe_path=False`` puts the working folder first on ``sys.path``, as a plain ``python`` does.

    What the run outside has said about itself stays outside: a pytest inside would take itself for a worker
    of pytest-xdist (which pytest-benchmark times nothing in), obey options, or print for a CI or in colours.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith(_OUTSIDE)} | {"PY_COLORS": "0"}
    if safe_path:
        own["PYTHONSAFEPATH"] = "1"
    return subprocess.run(
        [sys.executable, *args], cwd=cwd, env=own | env, capture_output=True, text=True, timeout=300
    )
