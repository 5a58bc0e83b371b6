"""``pytest-reinplace corpus``: pytest on the entries that are installed with us, and a plugin of that run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import NoReturn

import pytest

_FOLDER = Path(str(resources.files("pytest_reinplace.corpus")))


def run(arguments: Sequence[str]) -> NoReturn:
    """Become pytest with these arguments; its exit code is ours.

    The entries lie among other packages: no ini file around them is obeyed, and nothing is cached there.
    """
    own = ["-c", os.devnull, f"--rootdir={_FOLDER}", "-p", __name__, "-o", f"cache_dir={_cache()}"]
    sys.stdout.flush()
    # A process of its own: pytest warns of plugins that were imported before it could rewrite their asserts.
    command = [sys.executable, "-P", "-m", "pytest", *own, str(_FOLDER), *arguments]
    os.execv(sys.executable, command)


def _cache() -> Path:
    return Path.cwd() / ".pytest_cache"


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect it as a folder of files: pytest would import its package, in a checkout under another name."""
    return pytest.Dir.from_parent(parent, path=path) if path == _FOLDER else None
