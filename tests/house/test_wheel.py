"""A wheel that went through the sdist holds the three folders, whole, under one import name."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from configparser import ConfigParser
from email.parser import HeaderParser
from pathlib import Path

import pytest

from .checkout import PACKAGES, ROOT, modules, python

# What is built from: the rest of a checkout (environments, caches, .git) has no part in it.
_SOURCES = [*PACKAGES, "pyproject.toml", "README.md", "LICENSE"]

# What modules read that lies beside them.
_DATA = ("*.yaml", "*.json", "*.jinja", "*.css", "*.js")


def _build(hook: str, source: Path, into: Path) -> Path:
    """Build with the setuptools that is installed here: no network, no isolated environment."""
    into.mkdir()
    program = f"import setuptools.build_meta as b; print(b.{hook}({str(into)!r}))"
    done = python("-c", program, cwd=source)
    assert done.returncode == 0, done.stderr
    return into / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    tmp = tmp_path_factory.mktemp("build")
    copy = tmp / "checkout"
    copy.mkdir()
    for name in _SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    with tarfile.open(_build("build_sdist", copy, tmp / "sdist")) as sdist:
        sdist.extractall(tmp / "unpacked", filter="data")
    (unpacked,) = (tmp / "unpacked").iterdir()
    return zipfile.ZipFile(_build("build_wheel", unpacked, tmp / "wheel"))


def _metadata(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = [n for n in wheel.namelist() if n.endswith(f".dist-info/{name}")]
    return wheel.read(path).decode()


def test_every_module_and_entry_is_in_it_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    expected = {"pytest_reinplace/py.typed": "pytest_reinplace/py.typed"}
    for folder, package in PACKAGES.items():
        data = [path for kind in _DATA for path in sorted((ROOT / folder).rglob(kind))]
        for path in [*modules(folder), *data]:
            inside = package.replace(".", "/") + "/" + path.relative_to(ROOT / folder).as_posix()
            expected[inside] = path.relative_to(ROOT).as_posix()
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == set(expected)
    for inside, source in expected.items():
        assert wheel.read(inside) == (ROOT / source).read_bytes(), inside


def test_it_has_one_import_name(wheel: zipfile.ZipFile) -> None:
    assert {n.split("/")[0] for n in wheel.namelist() if ".dist-info/" not in n} == {"pytest_reinplace"}


def test_it_registers_the_plugin_and_the_command(wheel: zipfile.ZipFile) -> None:
    found = ConfigParser()
    found.read_string(_metadata(wheel, "entry_points.txt"))
    assert {name: dict(found[name]) for name in found.sections()} == {
        "pytest11": {"reinplace": "pytest_reinplace.plugin"},
        "console_scripts": {"pytest-reinplace": "pytest_reinplace.command.main:main"},
    }


def test_its_metadata_names_the_licence_and_the_versions(wheel: zipfile.ZipFile) -> None:
    metadata = HeaderParser().parsestr(_metadata(wheel, "METADATA"))
    assert metadata["Name"] == "pytest-reinplace"
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "torch<2.16,>=2.11" in metadata.get_all("Requires-Dist", [])
    assert "Framework :: Pytest" in metadata.get_all("Classifier", [])
    assert "pytest-reinplace contributors" in _metadata(wheel, "licenses/LICENSE")
