"""What pytest has to know of this checkout before it collects anything."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

_ROOT = Path(__file__).parent
_PACKAGES = (_ROOT / "passes", _ROOT / "corpus")


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    # pytest would import the __init__.py of a package that it collects from, under the folder's own name;
    # these two are imported as pytest_reinplace.passes and pytest_reinplace.corpus only.
    if any(path == package or package in path.parents for package in _PACKAGES):
        return pytest.Dir.from_parent(parent, path=path)
    return None
