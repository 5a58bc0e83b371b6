"""``pytest-reinplace memory``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch._inductor.config as inductor_config

from .reports import main

PROGRAMS = """
import torch

def product(a, b):
    return (a @ b).relu() @ b

library = torch.library.Library("memorytest", "FRAGMENT")
library.define("scratch(Tensor x) -> Tensor")
library.impl("scratch", lambda x: x + torch.zeros(1000)[0], "CPU")
torch.library.register_fake("memorytest::scratch", torch.empty_like, lib=library)

weight = torch.ones(8, 8, requires_grad=True)

def training(x):
    y = torch.ops.memorytest.scratch(x)
    (y @ weight).sin().sum().backward()

def nothing(x):
    return x

def raising(x):
    raise ValueError("not today")
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unoptimized: None) -> str:
    """Return the name of a module in the working folder, another one for each test."""
    name = f"held_{tmp_path.name}"
    text = PROGRAMS.replace("memorytest", f"memorytest_{tmp_path.name}")
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    return name


def memory(function: str, *arguments: str) -> int:
    return main(["memory", function, "--shape", "float32[8,8]", *arguments])


def test_the_table_is_in_program_order_with_lines(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    with inductor_config.patch(size_asserts=False):  # one line for each input, or for all on torch 2.15
        assert memory(f"{programs}:product", "--shape", "float32[8,8]") == 0
    at = f"at {programs}.py:5"
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        f"{programs}:product: pass inductor, backend inductor",
        "measured peak 512 B = 512 B that [fw 0/0] holds; unexplained: 0 B",
        "lower bound 512 B by [fw 0/0]: extern_kernels.mm(buf1, arg1_1, out=buf2) "
        "(the peak is 1.00 times that)",
        "[fw 0/0] static peak 512 B, lower bound 512 B, 2 allocations, 11 positions",
        f"* 256 B 2..10 buf0 (later buf1) for mm {at}",
        f"* 256 B 7..end buf2 for relu, mm_1 {at}",
    ]


def test_training_names_workspaces_and_released_inputs(
    programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert memory(f"{programs}:training", "--pass", "exact", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["pass"], found["unexplained"]) == ("exact", 0)
    forward, backward = found["programs"]
    assert (forward["graph"][:3], backward["graph"][:3]) == ("[fw", "[bw")
    (workspace,) = forward["workspaces"]
    assert (workspace["operator"].endswith("::scratch"), workspace["bytes"]) == (True, 4000)
    assert f"{programs}.py:" in workspace["source"]
    assert found["measured_peak"] == forward["peak"] == 4000 + 256
    assert found["lower_bound"] == max(one["bound"] for one in found["programs"])
    assert found["over_bound"] == found["measured_peak"] / found["lower_bound"] > 4
    assert forward["bound"] == forward["static_bound"]["bytes"] == 516 == forward["static_peak"]
    assert forward["static_bound"]["text"].startswith("return (")
    assert backward["bound"] == backward["before"] + backward["static_bound"]["bytes"]
    assert any(one["freed"] is not None for one in backward["inputs"])
    assert backward["before"] > 0
    assert any(one["at_peak"] for one in backward["allocations"])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nothing", "nothing: no graph was compiled, so Inductor has made no program of it"),
        ("raising", "raising raised ValueError: not today"),
        ("missing", "has no attribute 'missing'"),
    ],
)
def test_what_cannot_be_measured_is_an_error(
    programs: str, function: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert memory(f"{programs}:{function}") == 2
    assert message in capsys.readouterr().err


def test_an_unknown_pass_is_an_error(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert memory(f"{programs}:product", "--shape", "float32[8,8]", "--pass", "no.such:thing") == 2
    assert "--pass: " in capsys.readouterr().err
