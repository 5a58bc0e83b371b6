"""Entries measured in several processes at once, as ``torchrun`` starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from torch import distributed

from pytest_reinplace.base import launch
from pytest_reinplace.measure import group

BUILDERS = """
import torch
import torch.distributed as dist
from pytest_reinplace import Program

def add(x, y):
    dist.all_reduce(x)
    return x.index_add_(0, torch.tensor([1]), y) * 2

def summed(device):
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    x = torch.ones(64) * dist.get_rank()
    return Program(add, (x, x[:1].clone()))
"""


def launched(monkeypatch: pytest.MonkeyPatch, rank: int, *, by_torchrun: bool = True) -> None:
    """Let this process and what it starts be one of two."""
    for name, value in {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2}.items():
        monkeypatch.setenv(name, str(value))
    if by_torchrun:
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")


@pytest.mark.parametrize(
    ("rank", "by_torchrun", "is_written"), [(0, True, True), (1, True, False), (1, False, True)]
)
def test_the_first_process_reports(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, rank: int, by_torchrun: bool, is_written: bool
) -> None:
    pytester.makepyfile("def test_it(): pass")
    launched(monkeypatch, rank, by_torchrun=by_torchrun)
    result = pytester.runpytest("--reinplace-json=a.json", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    assert (pytester.path / "a.json").exists() == is_written


def test_programs_without_a_group_are_measured_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch, 1)
    assert group.agreed(3, 4) == (3, 4)
    assert group.slowest({"eager": (1.0, 2.0)}) == {"eager": (1.0, 2.0)}


def test_all_do_as_the_first_and_wait_for_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    def broadcast(told: list[Any], src: int) -> None:
        told[0] = (7, 8)

    def gather(everywhere: list[Any], mine: Any) -> None:
        everywhere[:] = [{"inductor": (3.0, 1.0), "eager": (1.0, 1.0)}, mine]

    launched(monkeypatch, 1)
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "broadcast_object_list", broadcast)
    monkeypatch.setattr(distributed, "all_gather_object", gather)
    assert group.agreed(3, 4) == (7, 8)
    assert group.slowest({"eager": (1.0, 2.0), "exact": (1.0, 2.0)}) == {"eager": (1.0, 2.0)}


def test_two_processes_measure_a_collective_together(tmp_path: Path) -> None:
    (tmp_path / "builders.py").write_text(BUILDERS)
    (tmp_path / "summed.reinplace.yaml").write_text("builder: builders:summed\nclones: {exact: []}\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    launcher = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    options = ["--reinplace-backend=graph", "--reinplace-update", "--reinplace-json=a.json"]
    command = [*launcher, "-m", "pytest", "summed.reinplace.yaml", *options, "--benchmark-max-time=0.2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("reinplace measured") == 1
    (found,) = (tmp_path / "baselines").iterdir()
    assert found.name.endswith("-x2-graph.yaml")
    assert list(yaml.safe_load(found.read_text())["entries"]) == ["summed"]
    assert (tmp_path / "a.json").exists()


def test_a_launch_that_does_not_number_its_processes_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert (launch.processes(), launch.rank(), launch.local_rank()) == (1, 0, 0)
