"""``pytest-reinplace blame``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from .reports import main

PROGRAMS = """
import torch

def cat_of_split(x):
    return torch.cat(torch.split(x, [2, 3], 1), 1)

def clean(x):
    return (x * 2 + 1).relu()

def nothing_to_do(x):
    return x.relu()

def sum_of_scalar(x):
    return torch.cumsum(torch.full((), 3.0), 0) + x

weight = torch.ones(5, requires_grad=True)

def training(x):
    (x * weight).sin().sum().backward()
    return weight.grad

def copied(graph):
    output = graph.output_node()
    (result,) = output.args[0]
    with graph.inserting_before(output):
        new = graph.call_function(torch.ops.aten.clone.default, (result,))
    new.meta.update(result.meta)
    output.args = ((new,),)
"""
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ON_213 = torch.__version__.startswith("2.13.")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module in the working folder, another one for each test."""
    name = f"blamed_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    return name


def blame(name: str, *arguments: str) -> int:
    return main(["blame", name, "--shape", "float32[2,5]", *arguments])


@pytest.mark.skipif(not ON_213, reason="which rules are wrong is written down for torch 2.13")
@pytest.mark.parametrize("name", ["inductor", "exact"])
def test_the_rule_that_is_wrong_is_named_with_its_line(
    programs: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert blame(f"{programs}:cat_of_split", "--pass", name) == 1
    first, graph, blamed = capsys.readouterr().out.splitlines()
    assert first == f"{programs}:cat_of_split: pass {name}, backend graph"
    assert graph.startswith("[fw 0/0] 1 application, ")
    assert " post_grad / pass_pattern_2: splitwithsizes_cat_replace, node cat at " in blamed
    assert f"{programs}.py:5: -3 nodes; output 0 (cat) shares storage with input 0" in blamed


def test_what_is_right_exits_with_zero(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert blame(f"{programs}:clean") == 0
    assert blame(f"{programs}:training") == 0
    capsys.readouterr()
    assert blame(f"{programs}:nothing_to_do") == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["no pass changed anything"]


def test_each_graph_of_training_has_its_own_applications(
    programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert blame(f"{programs}:training", "-v") == 0
    graphs = [line[:3] for line in capsys.readouterr().out.splitlines() if line.startswith("[")]
    assert (graphs.count("[jo"), graphs.count("[fw"), graphs.count("[bw")) == (1, 1, 1)


def test_a_pass_of_the_users_that_makes_a_copy_is_blamed_for_it(
    programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{programs}:copied"
    assert blame(f"{programs}:clean", "--pass", name, "--of", "copies") == 1
    text = capsys.readouterr().out
    assert "copies 0 -> 1" in text
    assert "reinplace_inplaceable_ops" in text and "new copies: aten::clone.self; +40 B copied" in text


def test_a_rule_that_fired_nowhere_is_told_with_those_that_did(
    programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{programs}:copied"
    assert blame(f"{programs}:clean", "--pass", name, "--of", "matches:reinplace_inplaceable_op") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("reinplace_inplaceable_op fired nowhere; valid are 'reinplace_inplaceable_ops/")


@pytest.mark.skipif(not ON_213, reason="which rules raise is written down for torch 2.13")
def test_a_crash_is_blamed_on_the_rule_that_raised(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert blame(f"{programs}:sum_of_scalar") == 2
    error = capsys.readouterr().err
    assert "raised IndexError: tuple index out of range" in error
    assert "--of crash says which pass and rule raised" in error
    assert blame(f"{programs}:sum_of_scalar", "--of", "crash") == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        "  post_grad / pass_pattern_1, rule pointless_cumsum_replacement at cumsum: "
        "IndexError: tuple index out of range"
    )


def test_json_has_every_application(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = blame(f"{programs}:clean", "--pass", f"{programs}:copied", "--of", "copies", "--json")
    found = json.loads(capsys.readouterr().out)
    assert code == 1 and found["of"] == "copies"
    (graph,) = [graph for graph in found["graphs"] if graph["blame"]]
    assert graph["graph"] == "[fw 0/0]"
    assert graph["blame"]["application"] in graph["applications"]
    assert {run["name"] for run in graph["passes"]} >= {"pass_pattern_0", "reinplace_inplaceable_ops"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--of", "speed"],
            "--of: expected contract, copies, nodes, seconds, crash, matches:RULE, got 'speed'",
        ),
        (["--pass", "nowhere:pass"], "--pass: "),
        (["--shape", "float32[2]"], "too many positional arguments; give each argument as --shape"),
    ],
)
def test_wrong_usage_exits_with_two(
    programs: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert blame(f"{programs}:clean", *arguments) == 2
    assert message in capsys.readouterr().err


def test_graphs_that_launch_triton_kernels_are_checked(
    programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("triton")
    with Path(f"{programs}.py").open("a") as file:
        file.write(f"""
import triton, triton.language as tl

@triton.jit
def double_(x_ptr, n, BLOCK: tl.constexpr):
    inside = tl.arange(0, BLOCK) < n
    tl.store(x_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, BLOCK), mask=inside) * 2, mask=inside)

def launching(x):
    x = x.to({DEVICE!r}) + 0
    double_[(1,)](x, 10, BLOCK=16)
    return torch.cat(torch.split(x, [2, 3], 1), 1)
""")
    blame(f"{programs}:launching", "--pass", "post_grad", "-v")
    out = capsys.readouterr().out
    assert "decompose_triton_kernel_wrapper_functional" in out or "post_grad_custom_post_pass" in out
    assert "not checked" not in out
