"""What is planted in a program that is as recorded turns the gate red: a clone, a peak, a runtime."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
import torch

# pytester forgets what is imported inside, by halves.
import pytest_reinplace.measure.summary
import pytest_reinplace.measure.update
import pytest_reinplace.session.entry_test  # noqa: F401
from pytest_reinplace.entry.entry import SUFFIX

HAS_GPU = torch.cuda.is_available()

BUILDERS = """
import os
import torch
from pytest_reinplace import Program
from pytest_reinplace.passes import reinplace

ROWS = {rows}

def fill(x):
    x.uniform_()
    return x + 1

def filled(device):
    return Program(fill, (torch.empty(ROWS, ROWS, device=device),))

def planted(gm):
    '''The exact pass, and behind it what the environment asks for; or nothing, which leaves a clone.'''
    planting = os.environ.get("PLANTED")
    if planting == "clone":
        return
    reinplace(gm)
    *_, output = gm.graph.nodes
    (node,) = output.all_input_nodes

    def call(op, *args, **kwargs):
        with gm.graph.inserting_before(output):
            made = gm.graph.call_function(op, args, kwargs)
        values = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in args]
        with node.meta["val"].fake_mode:
            made.meta["val"] = op(*values, **kwargs)
        return made

    if planting in ("peak", "runtime"):  # a product that is held while the result is made
        size = int(os.environ["PLANTED_SIZE"])
        like = dict(dtype=torch.float32, device=node.meta["val"].device)
        ones = call(torch.ops.aten.full.default, [size, size], 1.0, **like)
        product = call(torch.ops.aten.mm.default, ones, ones)
        corner = call(torch.ops.aten.slice.Tensor, product, 0, 0, 1)
        corner = call(torch.ops.aten.slice.Tensor, corner, 1, 0, 1)
        none = call(torch.ops.aten.mul.Tensor, corner, 0.0)
        output.replace_input_with(node, call(torch.ops.aten.add.Tensor, node, none))
"""
ENTRY = """
builder: planted_builders:filled
options: {fallback_random: true}
presets: {cpu: {}, cuda: {}}
clones: {exact: []}
"""


class Project:
    """A folder with one entry, measured on a GPU in processes of their own.

    On the CPU no limit is one of time: this process counts clones as well.
    """

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
        rows, backend = (8192, "inductor") if device == "cuda" else (256, "graph")
        self._pytester, self._monkeypatch = pytester, monkeypatch
        self._run = pytester.runpytest_subprocess if device == "cuda" else pytester.runpytest_inprocess
        self._options = [f"--reinplace-device={device}", f"--reinplace-backend={backend}"]
        self._options += ["--reinplace-pass=planted_builders:planted", "-p", "no:cacheprovider"]
        pytester.makepyfile(planted_builders=BUILDERS.format(rows=rows))
        folder = pytester.mkdir("models")
        (folder / f"fill{SUFFIX}").write_text(ENTRY)
        monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # pytest-benchmark times nothing in a worker
        monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:anyio")
        self.run("--reinplace-update").assert_outcomes(passed=1)

    def run(self, *options: str, planted: str = "", size: int = 0) -> pytest.RunResult:
        self._monkeypatch.setenv("PLANTED", planted)
        self._monkeypatch.setenv("PLANTED_SIZE", str(size))
        timing = () if "--benchmark-disable" in options else ("--benchmark-max-time=1",)
        return self._run("models", *self._options, *timing, *options)

    def refused(self, limit: str, planted: str, size: int = 0, *options: str) -> str:
        """Return the line by which a planted program is refused; the limit holds without."""
        gate = ("--reinplace-measure", f"--reinplace-fail-on={limit}", *options)
        self.run(*gate).assert_outcomes(passed=1)
        result = self.run(
            *gate, "--reinplace-json=a.json", "--reinplace-markdown=a.md", planted=planted, size=size
        )
        result.assert_outcomes(failed=1)
        (test,) = json.loads(Path(self._pytester.path, "a.json").read_text())["tests"].values()
        (line,) = test["measured"]["excesses"]
        assert f"<code>{line}</code>" in html.unescape(Path(self._pytester.path, "a.md").read_text())
        return str(line)


@pytest.fixture
def on_cpu(compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(compiling, monkeypatch, "cpu")


@pytest.fixture
def on_gpu(compiling: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(compiling, monkeypatch, "cuda")


def test_a_clone(on_cpu: Project) -> None:
    assert on_cpu.refused("clones:0", "clone", 0, "--benchmark-disable").startswith("clones 0 → 1 (recorded)")


@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_a_clone_on_a_gpu(on_gpu: Project) -> None:
    assert on_gpu.refused("clones:0", "clone", 0, "--benchmark-disable").startswith("clones 0 → 1 (recorded)")


@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_a_percent_of_peak_on_a_gpu(on_gpu: Project) -> None:
    line = on_gpu.refused("peak_bytes:1%", "peak", 840, "--benchmark-disable")
    assert line.startswith("peak bytes 256.0 MiB → ")


@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_a_tenth_of_the_runtime_on_a_gpu(on_gpu: Project) -> None:
    assert on_gpu.refused("runtime:5%", "runtime", 896).startswith("runtime +")
