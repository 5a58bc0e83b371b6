"""--reinplace-device, and the marker's device."""

from __future__ import annotations

import pytest
import torch

TESTS = """
import pytest, torch
from programs import *

def test_plain(assert_reinplaced, reinplace):
    assert reinplace.device == DEVICE
    assert_reinplaced(update, *(x.to(reinplace.device) for x in inputs(update)))

@pytest.mark.reinplace(device="cpu")
def test_marked(request):
    assert request.getfixturevalue("reinplace").device == "cpu"
    torch.compile(update)(*inputs(update))

def test_asks_late(request):
    assert request.getfixturevalue("reinplace").device == DEVICE

def test_asks_for_nothing():
    pass
"""

HAS_GPU = torch.cuda.is_available()


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


@pytest.mark.parametrize("args", [(), ("--reinplace-device=cpu",)])
def test_it_is_the_cpu_unless_said_otherwise(compiling: pytest.Pytester, args: tuple[str, ...]) -> None:
    compiling.makepyfile(TESTS.replace("DEVICE", "'cpu'"))
    compiling.runpytest_inprocess(*args).assert_outcomes(passed=4)


@pytest.mark.usefixtures("no_gpu")
def test_tests_for_a_device_that_is_missing_are_skipped(compiling: pytest.Pytester) -> None:
    """What is marked for another, or asks for no capture, runs: a report alone skips nothing."""
    compiling.makepyfile(TESTS.replace("DEVICE", "'cuda'"))
    result = compiling.runpytest_inprocess("--reinplace-device=cuda", "--reinplace-report", "-rs")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines([r"SKIPPED * test_*.py:*: no CUDA device"])
    result.stdout.no_fnmatch_line("*item_capture.py*")


@pytest.mark.usefixtures("no_gpu")
def test_the_marker_skips_one_test(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(TESTS.replace("DEVICE", "'cpu'").replace('device="cpu"', 'device="cuda"'))
    compiling.runpytest_inprocess().assert_outcomes(passed=3, skipped=1)


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_on_a_gpu_tests_for_it_run(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(TESTS.replace("DEVICE", "'cuda'"))
    compiling.runpytest_inprocess("--reinplace-device=cuda").assert_outcomes(passed=4)


ENTRY = "builder: built:build\nclones: {exact: []}\npresets: {PRESETS}\n"
BUILT = """
import torch
from programs import update, inputs
from pytest_reinplace import Program

def build(device):
    return Program(update, tuple(x.to(device) for x in inputs(update)))
"""


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    ("presets", "reason"),
    [("cpu: {}", "no preset for cuda, only for cpu"), ("cuda: {}", "no CUDA device")],
)
def test_an_entry_runs_on_it_or_is_skipped(compiling: pytest.Pytester, presets: str, reason: str) -> None:
    compiling.makepyfile(built=BUILT)
    (compiling.path / "one.reinplace.yaml").write_text(ENTRY.replace("PRESETS", presets))
    name = "one.reinplace.yaml"
    result = compiling.runpytest_inprocess("--reinplace-device=cuda", "-rs", name)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"SKIPPED*: {reason}"])
    if presets.startswith("cpu"):
        compiling.runpytest_inprocess("--reinplace-device=cpu", name).assert_outcomes(passed=1)


def test_an_unknown_device_stops_the_session(compiling: pytest.Pytester) -> None:
    result = compiling.runpytest_inprocess("--reinplace-device=cuda:1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --reinplace-device: expected one of cpu, cuda, got 'cuda:1'"])
