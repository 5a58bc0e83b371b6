"""Workers of pytest-xdist: one report and one file, the same as from a serial run."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

FILES = ("json", "markdown", "html")

TESTS = """
import torch
from programs import *

def test_clones():
    torch.compile(keep)(*inputs(keep))

def test_in_place(assert_reinplaced):
    assert_reinplaced(call_op, *inputs(call_op))
"""

# A worker is a fresh process: Inductor is not loaded when this test begins.
KERNEL = """
import torch
from kernels import add_

def launch(x, y):
    add_[(1,)](x, y, x.numel(), BLOCK=16)
    return y + 1

def test_kernel(assert_reinplaced):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y = torch.ones(10, device=device), torch.ones(10, device=device)
    assert_reinplaced(launch, x, y)
    assert x.tolist() == [3] * 10
"""


def test_two_workers_report_like_one_process(compiling: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    compiling.makepyfile(test_it=TESTS)
    if importlib.util.find_spec("triton") is not None:
        compiling.makepyfile(test_kernel=KERNEL)
        shutil.copy(Path(__file__).parent / "kernels.py", compiling.path)
    count = len(list(compiling.path.glob("test_*.py"))) + 1
    compiling.runpytest_inprocess(*_files("serial")).assert_outcomes(passed=count)
    result = compiling.runpytest_subprocess("-v", "--reinplace-report", *_files("parallel"), "-n", "2")
    result.assert_outcomes(passed=count)
    result.stdout.fnmatch_lines(
        [
            "  test_it.py::test_clones *  1 *  1 *  0 *  1 *  32 B",
            "  test_it.py::test_in_place *  1 *  1 *  1 *  0 *  0 B",
        ]
    )
    assert '"before": [' in (compiling.path / "serial.json").read_text()
    for kind in FILES:
        assert _read(compiling, f"serial.{kind}") == _read(compiling, f"parallel.{kind}"), kind
    properties = _properties(compiling.path / "serial.xml")
    assert properties == _properties(compiling.path / "parallel.xml")
    clones = properties["test_it.test_clones"]
    assert {name: value for name, value in clones.items() if name != "reinplace"} == {
        "reinplace_graphs": "1",
        "reinplace_candidates": "1",
        "reinplace_reinplaced": "0",
        "reinplace_cloned": "1",
        "reinplace_clone_bytes": "32",
    }
    assert "picture" not in clones["reinplace"]


def _files(stem: str) -> list[str]:
    """Return the options for every kind of file that a session writes."""
    return [f"--reinplace-{kind}={stem}.{kind}" for kind in FILES] + [f"--junitxml={stem}.xml"]


def _read(project: pytest.Pytester, name: str) -> bytes:
    return (project.path / name).read_bytes()


def _properties(path: Path) -> dict[str, dict[str, str]]:
    """Return the properties of each test in a JUnit file."""
    return {
        f"{case.get('classname')}.{case.get('name')}": {
            str(p.get("name")): str(p.get("value")) for p in case.iter("property")
        }
        for case in ElementTree.parse(path).iter("testcase")
    }
