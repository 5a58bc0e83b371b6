"""What importing us costs and whom it disturbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from .checkout import ROOT, python

# Seconds and hundreds of megabytes, which a project that uses none of the plugin must not pay.
_HEAVY = ("torch", "triton", "yaml", "numpy", "transformers", "sympy")

_COLLECT = f"""
import sys, pytest
status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider"])
assert status == pytest.ExitCode.NO_TESTS_COLLECTED, status
assert "pytest_reinplace.plugin" in sys.modules, "the plugin was not loaded"
print("heavy:", *(name for name in {_HEAVY!r} if name in sys.modules))
"""


def test_loading_the_plugin_imports_nothing_heavy(tmp_path: Path) -> None:
    # Only our entry point: what another plugin imports is not ours to answer for.
    done = python(
        "-c",
        _COLLECT,
        cwd=tmp_path,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        PYTEST_PLUGINS="pytest_reinplace.plugin",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].split() == ["heavy:"]


def test_the_entry_point_loads_the_plugin_by_itself(tmp_path: Path) -> None:
    done = python("-m", "pytest", "--trace-config", "--collect-only", cwd=tmp_path)
    assert "pytest_reinplace" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 5


@pytest.mark.parametrize("folder", ["passes", "corpus"])
def test_a_folder_of_the_checkout_cannot_be_imported_by_its_own_name(folder: str) -> None:
    done = python("-c", f"import {folder}", cwd=ROOT, safe_path=False)
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert message.startswith("ImportError: "), done.stderr
    assert f"pytest_reinplace.{folder}" in message
    assert f"was imported as {folder}; " in message


@pytest.mark.parametrize("folder", ["passes", "corpus"])
def test_it_can_be_imported_by_its_installed_name(folder: str, tmp_path: Path) -> None:
    done = python("-c", f"import pytest_reinplace.{folder} as p; print(p.__name__)", cwd=tmp_path)
    assert done.stdout.split() == [f"pytest_reinplace.{folder}"], done.stderr


_PUBLIC = """
import sys
import pytest_reinplace
assert "torch" not in sys.modules
assert not [name for name in sys.modules if name.startswith("pytest_reinplace.")]
from pytest_reinplace import AssertClones, AssertReinplaced, Program, Reinplace, Traced
print(sorted(pytest_reinplace.__all__) == sorted(pytest_reinplace._HOMES), Reinplace.__name__)
pytest_reinplace.Nothing
"""


def test_public_types_are_loaded_when_they_are_asked_for(tmp_path: Path) -> None:
    done = python("-c", _PUBLIC, cwd=tmp_path)
    assert done.stdout.split() == ["True", "Reinplace"], done.stderr
    assert done.stderr.splitlines()[-1] == (
        "AttributeError: module 'pytest_reinplace' has no attribute 'Nothing'"
    )


_DOWNSTREAM = """
import corpus, passes
import pytest_reinplace.corpus, pytest_reinplace.passes
from passes.fold import fold

def test_both_are_there():
    assert corpus.WHOSE == passes.WHOSE == "downstream"
    assert fold(2) == 3
    assert pytest_reinplace.passes is not passes
    assert pytest_reinplace.passes.Report().clones == []
    assert pytest_reinplace.corpus is not corpus
"""


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_a_repository_with_such_folders_of_its_own_keeps_them(tmp_path: Path, mode: str) -> None:
    for name in ("passes", "corpus"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('WHOSE = "downstream"\n')
    (tmp_path / "passes" / "fold.py").write_text("def fold(x):\n    return x + 1\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_downstream.py").write_text(_DOWNSTREAM)
    # python -m pytest puts the repository itself first on sys.path, the hardest case for our names.
    done = python("-m", "pytest", f"--import-mode={mode}", "tests", cwd=tmp_path, safe_path=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
