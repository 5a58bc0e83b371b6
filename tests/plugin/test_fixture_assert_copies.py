"""The fixture assert_copies."""

from __future__ import annotations

import copy
import html
import json

import pytest

from pytest_reinplace.base.fit import TIMES
from pytest_reinplace.record import stored
from pytest_reinplace.reports.document import schema

from .test_report_schema import closed

PROGRAMS = """
import torch

def product(x, y):
    return x[:, ::2] @ y

def plain(x, y):
    return (x[:, :8] * 2 + y).sin()

def copied(x, y):
    return x.clone(), y * 2

def inputs():
    return torch.ones(8, 16), torch.ones(8, 8)
"""


@pytest.fixture
def lowering(compiling: pytest.Pytester) -> pytest.Pytester:
    """Return a project whose tests compile by Inductor."""
    compiling.makepyfile(programs=PROGRAMS)
    compiling.makeini("[pytest]\nreinplace_backend = inductor\n")
    return compiling


def run(project: pytest.Pytester, body: str, *args: str) -> pytest.RunResult:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    text = (
        f"import pytest, torch\nfrom programs import *\n\ndef test_it(assert_copies, reinplace):\n{lines}\n"
    )
    project.makepyfile(test_it=text)
    return project.runpytest_inprocess(*args)


def test_what_was_compiled_is_compared_and_asked(lowering: pytest.Pytester) -> None:
    body = """
assert assert_copies(plain, *inputs()) == []
assert assert_copies(copied, *inputs()) == []
assert assert_copies(product, *inputs()) == ["aten::mm.self"]
assert assert_copies == ["aten::mm.self"]
assert len(assert_copies) == 1 and list(assert_copies) == ["aten::mm.self"]
assert "aten::mm.self" in assert_copies and "aten::mm" not in assert_copies
[added] = reinplace.run(product, *inputs()).graphs[0].copies
assert (added.nbytes, added.cause, added.node, added.meant) == (256, "strides", "mm", False)
assert [one.meant for graph in reinplace.graphs for one in graph.copies] == [True, False, False]
"""
    run(lowering, body).assert_outcomes(passed=1)


def test_a_difference_raises_by_itself_and_explains_the_copy(lowering: pytest.Pytester) -> None:
    body = "assert_copies(product, *inputs()) == ['aten::cat.tensors[0]']"
    result = run(lowering, body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E   *AssertionError: 1 unexpected copy: aten::mm.self; 1 expected copy is missing: "
            "aten::cat.tensors[[]0] (pass inductor, backend inductor)",
            "E   *expected [[]'aten::cat.tensors[[]0]']",
            "E   *got * [[]'aten::mm.self']",
            "E   * aten::mm.self: 256 B, strides: aten::mm asks for other strides; buf0 copies arg0_1*, node "
            "mm at programs.py:4",
        ],
        consecutive=True,
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("assert_copies == []", "*no graph was compiled, so there are no copies to know of*"),
        ("len(assert_copies)", "*no graph was compiled, so there are no copies to know of*"),
        ("assert_copies < []", "*expected assert_copies == [[]...], got assert_copies < [[]]*"),
        (
            "assert_copies != []",
            "*expected copies to be compared by ==, got !=, which would hold for any other copy",
        ),
        ("assert assert_copies", "*expected assert_copies == [[]...], got assert_copies alone*"),
        ("assert_copies == 0", "*expected a list of labels * got 0: write assert_copies == [[]]"),
        ("assert_copies == {'a': 1}", "*list each label as often as it is copied"),
        ("assert_copies == [1]", "*expected labels as strings, got 1"),
        ("assert_copies(product, torch.ones(1))", "*missing a required argument: 'y'*"),
        ("3 in assert_copies", "*expected a label as a string, got 3"),
    ],
)
def test_what_would_hold_for_another_reason_is_refused(
    compiling: pytest.Pytester, body: str, told: str
) -> None:
    compiling.makepyfile(programs=PROGRAMS)
    result = run(compiling, body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E {told}"])


def test_nothing_holds_where_nothing_was_lowered(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(programs=PROGRAMS)
    result = run(compiling, "assert_copies(product, *inputs()) == []")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *no graph was lowered, so there are no copies to know of: backend graph lowers nothing; mark "
            'the test reinplace(backend="inductor") (pass inductor, backend graph)'
        ]
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "pass",
            "*assert_copies was requested and never used, so nothing was asserted: write assert_copies == *",
        ),
        (
            "assert_copies(plain, *inputs())",
            "*assert_copies(...) was called, and what it returned was compared with nothing*",
        ),
    ],
)
def test_a_passing_test_that_never_asks_fails_at_teardown(
    compiling: pytest.Pytester, body: str, told: str
) -> None:
    compiling.makepyfile(programs=PROGRAMS)
    result = run(compiling, body)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([told])


def test_the_backward_is_seen(lowering: pytest.Pytester) -> None:
    body = """
x, y = (one.requires_grad_() for one in inputs())
loss = torch.compile(lambda x, y: product(x, y).sin().sum())(x, y)
before = len(assert_copies)
loss.backward()
assert [graph.id[:3] for graph in reinplace.graphs] == ["[fw", "[bw"]
assert all(graph.copies is not None for graph in reinplace.graphs) and before == 1
"""
    run(lowering, body).assert_outcomes(passed=1)


def test_the_json_report_has_them_all_as_its_schema_says(lowering: pytest.Pytester) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    body = "assert_copies(copied, *inputs()) == []\nassert_copies(product, *inputs()) == ['aten::mm.self']"
    run(lowering, body, "--reinplace-json=out.json").assert_outcomes(passed=1)
    written = json.loads((lowering.path / "out.json").read_text())
    jsonschema.validate(written, closed(schema()))
    [test] = written["tests"].values()
    found = [[(one["label"], one["meant"]) for one in graph["copies"]] for graph in test["graphs"]]
    assert found == [[("aten::clone", True)], [("aten::mm.self", False)]]
    [read] = stored.read(lowering.path / "out.json").records
    assert [graph["copies"] for graph in read.graphs] == [graph["copies"] for graph in test["graphs"]]
    for key, wrong in (("nbytes", -1), ("meant", 1), ("label", None), ("source", 3)):
        damaged = copy.deepcopy(written)
        damaged["tests"]["test_it.py::test_it"]["graphs"][1]["copies"][0][key] = wrong
        with pytest.raises(stored.StoredError, match=f"expected '{key}' to be"):
            stored.parse(damaged, "out.json")


@pytest.mark.parametrize(
    "limit", ["max_copies=1", "max_copy_bytes=256", "max_copies=1, max_copy_bytes='1KiB'"]
)
def test_within_the_limits_of_its_marker_a_test_passes(lowering: pytest.Pytester, limit: str) -> None:
    marked(lowering, limit).assert_outcomes(passed=1)


def test_beyond_the_limits_it_fails_and_explains(lowering: pytest.Pytester) -> None:
    result = marked(lowering, "max_copies=0, max_copy_bytes=255")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "lowering adds 1 copy; the limit is max_copies=0 (pass inductor, backend inductor)",
            "lowering copies 256 B; the limit is max_copy_bytes=255",
            "  aten::mm.self: 256 B, strides: *",
        ],
        consecutive=True,
    )


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (
            "max_copies=0, backend='graph'",
            "no graph was lowered, so there are no copies to know of: backend graph*",
        ),
        ("max_copies=-1", "*marker reinplace: expected max_copies to be an int of at least 0, got -1"),
        ("max_copy_bytes='many'", "*marker reinplace: max_copy_bytes: expected *"),
    ],
)
def test_a_limit_that_nothing_can_be_held_against_fails(
    lowering: pytest.Pytester, limit: str, told: str
) -> None:
    result = marked(lowering, limit)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([told])


def marked(project: pytest.Pytester, limit: str) -> pytest.RunResult:
    body = "def test_it():\n    torch.compile(product)(*inputs())\n"
    text = f"import pytest, torch\nfrom programs import *\n\n@pytest.mark.reinplace({limit})\n{body}"
    project.makepyfile(test_it=text)
    return project.runpytest_inprocess()


def test_reports_tell_them_by_line_and_cause(lowering: pytest.Pytester) -> None:
    body = "assert_copies(copied, *inputs()) == []\nassert_copies(product, *inputs()) == ['aten::mm.self']"
    result = run(lowering, body, "--reinplace-report", "--reinplace-markdown=out.md")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "lowering adds 1 copy: 256 B in 1 test",
            "  aten::mm.self at programs.py:4: 256 B, strides: aten::mm asks for other",
            "      strides",
        ],
        consecutive=True,
    )
    lines = html.unescape((lowering.path / "out.md").read_text()).splitlines()
    assert "<details><summary>lowering adds 1 copy: 256 B in 1 test</summary>" in lines
    [row] = [line for line in lines if "aten::mm.self" in line]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:4] == ["256 B", f"1{TIMES}", "strides"]
    assert "programs.py:4" in cells[4]
    assert cells[5] == "aten::mm asks for other strides"


def test_reports_say_nothing_where_lowering_adds_nothing(lowering: pytest.Pytester) -> None:
    result = run(
        lowering, "assert_copies(copied, *inputs()) == []", "--reinplace-report", "--reinplace-markdown=o.md"
    )
    result.assert_outcomes(passed=1)
    assert "lowering adds" not in result.stdout.str()
    assert "lowering adds" not in (lowering.path / "o.md").read_text()
