"""``pytest-reinplace explain``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..plugin.programs import PROGRAMS
from .reports import main

MORE = """
def make():
    return inputs(update)

def make_named():
    return {"x": torch.ones(8)}

def make_one():
    return torch.ones(8)

def raises(*args):
    raise RuntimeError("two\\x1b\\nlines")

def nothing(x):
    return x

class Thing:
    pass

number = 3
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module in the working folder, another one for each test."""
    name = f"programs_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PROGRAMS + MORE)
    monkeypatch.chdir(tmp_path)
    return name


def explain(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["explain", "--backend=graph", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_clone_is_explained_as_in_a_test(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, graph, clone, why = explain(capsys, f"{programs}:keep", "--shape", "float32[8]")
    assert first == f"{programs}:keep: pass inductor, backend graph"
    assert graph == "[fw 0/0] 1 candidate, 0 in place, 1 cloned, 32 B"
    assert clone.startswith(f"  aten::index_put.self at {programs}.py:")
    assert clone.endswith(": 32 B, the old value is still read after this write")
    assert why.startswith("    held back by sum_1 (aten::sum) at ")
    assert "; hint: our pass reads it before the write" in why


@pytest.mark.parametrize("name", ["inductor", "exact"])
def test_inputs_come_from_a_callable_or_from_descriptions(
    programs: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ways = [
        ["--inputs", f"{programs}:make"],
        ["--shape", "float32[8]", "--shape=int64[2]", "--shape", "float32[2]"],
        ["--shape", "float32[8] int64[ 2 ]  float32[2]"],
    ]
    for way in ways:
        first, graph, outcome = explain(capsys, f"{programs}:update", "--pass", name, *way)
        assert first == f"{programs}:update: pass {name}, backend graph"
        assert graph == "[fw 0/0] 1 candidate, 1 in place, 0 cloned"
        assert outcome.startswith(f"  aten::index_put.self: in place at {programs}.py:")


@pytest.mark.parametrize("maker", ["make_named", "make_one"])
def test_inputs_may_be_keywords_or_one_argument(
    programs: str, maker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = explain(capsys, f"{programs}:pure", "--inputs", f"{programs}:{maker}")
    assert lines[1:] == ["[fw 0/0] 0 candidates, 0 in place, 0 cloned"]


def test_described_tensors_are_the_same_each_time() -> None:
    import torch

    from pytest_reinplace.command.inputs import described

    one, two = (described(["float16[2,3] bool[] int64[4]", "complex64[1]"], "cpu").args for _ in range(2))
    assert [(t.dtype, tuple(t.shape)) for t in one] == [
        (torch.float16, (2, 3)),
        (torch.bool, ()),
        (torch.int64, (4,)),
        (torch.complex64, (1,)),
    ]
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert one[0].count_nonzero() > 0
    assert one[2].count_nonzero() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{m}"], "function: expected module:function, got '{m}'"),
        (["{m}:kep"], "has no attribute 'kep': did you mean 'keep'?"),
        (
            ["{m}:Thing"],
            "instance, got a class: make an instance in a module, and name that, as in {m}:model",
        ),
        (
            ["some/folder/{m}.py:keep"],
            "module:function, got 'some/folder/{m}.py:keep': did you mean 'some.folder.{m}:keep'?",
        ),
        (["{m}.py:keep"], "did you mean '{m}:keep'?"),
        (["{m}:number"], "expected a function or a module instance, got int"),
        (
            ["no_such_module:f"],
            "'no_such_module'; modules are looked for on sys.path and in the working folder, {cwd}",
        ),
        (["{m}:keep"], "missing a required argument: 'x'; give each argument as --shape"),
        (["{m}:keep"], "{m}:keep(x) at {m}.py:"),
        (["{m}:keep", "--shape=float32[1] float32[1]"], ": too many positional arguments"),
        (["{m}:keep", "--shape=flaot32[1]"], "no dtype is called 'flaot32': did you mean 'float32'?"),
        (["{m}:keep", "--shape=float32[-1]"], "expected a tensor like float32[8,16], got 'float32[-1]'"),
        (["{m}:keep", "--shape=float32[2"], "expected a tensor like float32[8,16], got 'float32[2'"),
        (["{m}:keep", "--shape=8,16"], "expected a tensor like float32[8,16], got '8,16'"),
        (["{m}:keep", "--shape=\x1b[1]"], "expected a tensor like float32[8,16], got '\\\\x1b"),
        (["{m}:keep", "--shape=float32[999999999999999999,9]"], "expected at most 1099511627776 bytes"),
        (["{m}:keep", "--shape=float32[1]", "--device=nodevice"], "'float32[1]' on nodevice: "),
        (["{m}:keep", "--inputs={m}:raises"], "--inputs '{m}:raises' raised RuntimeError: two\\x1b\\nlines"),
        (["{m}:raises"], "{m}:raises raised RuntimeError: two\\x1b"),
        (["{m}:nothing", "--shape=float32[1]"], "no graph was compiled, so there is nothing to explain"),
        (["{m}:keep", "--shape=float32[1]", "--pass={m}:nopass"], "--pass: pass '{m}:nopass':"),
    ],
)
def test_what_cannot_be_explained_is_exit_code_2(
    programs: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [argument.replace("{m}", programs) for argument in arguments]
    assert main(["explain", "--backend=graph", *filled]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    last = said.err.splitlines()[-1]
    assert last.startswith("pytest-reinplace explain: error: ")
    assert message.replace("{m}", programs).replace("{cwd}", os.getcwd()) in last
    assert last.isprintable()


@pytest.mark.parametrize("more", [["--shape=a[1]", "--inputs=a:b"], ["--pass=x"], ["--backend=x"]])
def test_options_that_do_not_fit_are_wrong_usage(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["explain", "a:b", *more])
    assert caught.value.code == 2


def test_outside_pytest_with_inductor_itself(programs: str) -> None:
    command = [sys.executable, "-m", "pytest_reinplace.command", "explain", f"{programs}:make_one_and_keep"]
    Path(f"{programs}.py").write_text(
        f"{PROGRAMS}\n\ndef make_one_and_keep():\n    return keep(torch.ones(8))\n"
    )
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "REINPLACE_"))}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=own | {"PYTHONSAFEPATH": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert "pass inductor, backend inductor" in done.stdout
    assert "[fw 0/0] 1 candidate, 0 in place, 1 cloned, 32 B" in done.stdout
