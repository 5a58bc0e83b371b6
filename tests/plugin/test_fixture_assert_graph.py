"""The fixture assert_graph: graphs as text in files that --reinplace-update writes, and patterns of lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from pytest_reinplace.golden.file import text_of
from pytest_reinplace.golden.pattern import PatternError, match
from pytest_reinplace.golden.text import Line, Writer
from pytest_reinplace.passes.verify import copied

from ..passes.trace import arange, functional

UPDATE, DIFF = "--reinplace-update", "--reinplace-update-diff"
PROJECT = """
import torch
from pytest_reinplace.passes import post_grad

def fold(x):
    return torch.cat(torch.split(x, [2, 3], 1), 1) * 2

def no_pass(graph: torch.fx.Graph):
    pass
"""
TEST = """
def test_it(reinplace, assert_graph):
    traced = reinplace.trace(fold, torch.ones(2, 5))
    after = assert_graph("fold", traced, post_grad.find("cat_of_split").apply)
    assert torch.ops.aten.cat.default not in [node.target for node in after.graph.nodes]
    assert torch.ops.aten.cat.default in [node.target for node in traced.gm.graph.nodes]
"""
FOLD = """\
before
    arg: float32[2, 5]
    split_with_sizes: (float32[2, 2] strides [5, 1], float32[2, 3] strides [5, 1]) = \
aten.split_with_sizes.default(arg, [2, 3], 1)
    getitem: float32[2, 2] strides [5, 1] = split_with_sizes[0]
    getitem_1: float32[2, 3] strides [5, 1] = split_with_sizes[1]
    cat: float32[2, 5] = aten.cat.default([getitem, getitem_1], 1)
    mul: float32[2, 5] = aten.mul.Tensor(cat, 2)
    return (mul,)

after
    arg: float32[2, 5]
    mul: float32[2, 5] = aten.mul.Tensor(arg, 2)
    return (mul,)
"""


@pytest.fixture
def project(compiling: pytest.Pytester) -> pytest.Pytester:
    compiling.makepyfile(test_golden=PROJECT + TEST)
    return compiling


def graph_file(project: pytest.Pytester, name: str = "fold", module: str = "test_golden") -> Path:
    return project.path / f"{module}.graphs" / f"{name}.graph"


def test_a_missing_file_fails_with_its_text_and_update_writes_it(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*test_golden.graphs/fold.graph is missing",
            "E*hint: pytest --reinplace-update writes what came; read it before you commit it; it would be",
            "E*mul: float32[[]2, 5[]] = aten.mul.Tensor(arg, 2)",
        ]
    )
    assert not graph_file(project).exists()
    result = project.runpytest_inprocess(UPDATE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*reinplace graphs*",
            "+before",
            "test_golden.graphs/fold.graph: 1 graph updated, of test_golden.py::test_it",
        ]
    )
    assert graph_file(project).read_text() == FOLD
    again = project.runpytest_inprocess(UPDATE)
    again.assert_outcomes(passed=1)
    again.stdout.no_fnmatch_line("*reinplace graphs*")
    project.runpytest_inprocess().assert_outcomes(passed=1)


def test_another_graph_fails_with_a_diff_until_it_is_updated(project: pytest.Pytester) -> None:
    project.runpytest_inprocess(UPDATE).assert_outcomes(passed=1)
    project.makepyfile(test_golden=(PROJECT + TEST).replace("* 2", "* 3"))
    old = graph_file(project).read_bytes()
    for options in ([], ["--reinplace-update-clones"], [DIFF], [DIFF, UPDATE]):
        result = project.runpytest_inprocess(*options)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "E*the graph is not as in test_golden.graphs/fold.graph",
                "E*-    mul: float32[[]2, 5[]] = aten.mul.Tensor(arg, 2)",
                "E*+    mul: float32[[]2, 5[]] = aten.mul.Tensor(arg, 3)",
            ]
        )
        assert graph_file(project).read_bytes() == old
        if DIFF in options:
            result.stdout.fnmatch_lines(["test_golden.graphs/fold.graph: 1 graph would be updated, *"])
    project.runpytest_inprocess(UPDATE).assert_outcomes(passed=1)
    assert graph_file(project).read_text() == FOLD.replace(", 2)\n    return", ", 3)\n    return")


def test_line_ends_of_another_system_are_no_difference(project: pytest.Pytester) -> None:
    project.runpytest_inprocess(UPDATE).assert_outcomes(passed=1)
    graph_file(project).write_bytes(FOLD.replace("\n", "\r\n").encode())
    project.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_two_tests_with_one_name_and_other_graphs_leave_it(
    project: pytest.Pytester, workers: list[str]
) -> None:
    project.makepyfile(
        test_golden=PROJECT
        + "import pytest\n@pytest.mark.parametrize('factor', [2, 3])\n"
        + "def test_it(reinplace, assert_graph, factor):\n"
        + "    assert_graph('fold', reinplace.trace(lambda x: x * factor, torch.ones(2)).gm.graph)\n"
    )
    result = project.runpytest_inprocess(UPDATE, *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["test_golden.graphs/fold.graph: left as it is: its tests disagree: give each of them *own*"]
    )
    assert not graph_file(project).exists()


def test_workers_have_their_graphs_written_by_one_process(project: pytest.Pytester) -> None:
    project.makepyfile(test_golden=PROJECT + TEST, test_other=PROJECT + TEST.replace("fold)", "no_pass)"))
    project.makepyfile(test_other=PROJECT + TEST)
    project.runpytest_inprocess(UPDATE, "-n2").assert_outcomes(passed=2)
    assert graph_file(project).read_text() == graph_file(project, module="test_other").read_text() == FOLD


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            "assert_graph('a/b', gm)",
            "ValueError: expected letters, digits, * as the name of a graph, got 'a/b'",
        ),
        ("assert_graph('a', 3)", "TypeError: expected an fx.GraphModule, its Graph or * got int"),
        ("assert_graph('a', gm, 3)", "TypeError: expected a graph or a pass as what becomes of it, got int"),
        (
            "assert_graph.matches(gm, '  ')",
            "*PatternError: expected lines of a graph as a pattern, got none*",
        ),
        ("pass", "*assert_graph was requested and never used, so nothing was asserted: write assert_graph(*"),
    ],
)
def test_what_is_asked_wrong_is_told(project: pytest.Pytester, body: str, error: str) -> None:
    project.makepyfile(
        test_golden=f"{PROJECT}\ndef test_it(reinplace, assert_graph):\n"
        f"    gm = reinplace.trace(fold, torch.ones(2, 5)).gm\n    {body}\n"
    )
    result = project.runpytest_inprocess(UPDATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"*{error}"])
    assert not graph_file(project, "a").parent.exists()


def test_of_a_test_that_fails_otherwise_or_should_nothing_is_written(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_golden=PROJECT + TEST + "    assert 0\n",
        test_other=PROJECT + TEST.replace("def test_it", "import pytest\n@pytest.mark.xfail\ndef test_it"),
    )
    result = project.runpytest_inprocess(UPDATE)
    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        ["test_golden.graphs/fold.graph: left as it is: its test fails for something else *"]
    )
    assert not graph_file(project).exists() and not graph_file(project, module="test_other").exists()


def test_without_observing_it_is_skipped(project: pytest.Pytester) -> None:
    project.runpytest_inprocess("--reinplace-disable").assert_outcomes(skipped=1)


# --- the text ---


def test_symbols_are_letters_and_other_layouts_are_told() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.t() + 1, y.nonzero() * x.shape[0], torch.cat([x, x * 2])

    gm, _ = functional(program, arange(2, 3), arange(4, 4), dynamic=True)
    text = text_of(gm, None)
    assert re.findall(r"^    arg_?\d*: (.*)$", text, re.MULTILINE) == [
        "A",
        "B",
        "float32[A, B]",
        "C",
        "float32[C, C]",
    ]
    assert "permute: float32[B, A] strides [1, B] = aten.permute.default(arg_2, [1, 0])" in text
    assert "cat: float32[2*A, B] = aten.cat.default([arg_2, mul_1])" in text
    assert "nonzero: int64[uA, 2] strides [1, uA] = aten.nonzero.default(arg_4)" in text
    assert "expression uA >= 0" in text and not re.search(r"\bs\d|\bu\d|0x", text)


def test_it_does_not_depend_on_how_nodes_are_called() -> None:
    gm, _ = functional(lambda x: (x.sin() + x.cos(), x.sin().sin()), arange(2, 3))
    other = copied(gm)
    for i, node in enumerate(other.graph.nodes):
        if node.op == "call_function":
            node.name = f"other_{i * 7}"
    assert text_of(gm, None) == text_of(other, None)
    assert "sin_2: float32[2, 3] = aten.sin.default(sin_1)" in text_of(gm, None)


def test_a_node_that_stays_keeps_its_name_and_a_new_one_gets_another() -> None:
    gm, _ = functional(lambda x: (x.sin().sin().cos(),), arange(2))
    after = copied(gm)
    first, second = after.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default)
    second.replace_input_with(first, first.all_input_nodes[0])
    after.graph.erase_node(first)
    with after.graph.inserting_before(second):
        second.args = (after.graph.call_function(torch.ops.aten.sin.default, second.args),)
    lines = [str(line) for line in text_of(gm, after).splitlines()]
    assert lines[lines.index("after") + 2 : -1] == [
        "    sin_2 = aten.sin.default(arg)",
        "    sin_1: float32[2] = aten.sin.default(sin_2)",
        "    cos: float32[2] = aten.cos.default(sin_1)",
    ]


def test_subgraphs_stand_below_and_nothing_has_an_address() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))

    gm, _ = functional(program, arange(3))
    text = text_of(gm, None)
    assert "true_graph: graph = self.true_graph_0\n        arg: float32[3]\n        add: " in text
    gm.graph.find_nodes(op="call_function", target=torch.ops.aten.sum.default)[0].args = (object(),)
    assert "<object object>" in text_of(gm, None)


# --- patterns ---


def lines(*texts: str) -> list[Line]:
    return [Line(text, re.sub(r":.*? =", " =", text)) for text in texts]


GRAPH = lines("x: f32[2]", "a: f32[2] = sin(x)", "b: f32[2] = cos(a)", "c: f32[2] = sin(b)", "return (c,)")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a = sin(x)", {}),
        ("a: f32[2] = sin(x)\n b = cos(a)", {}),
        ("{p} = sin({q})\n{r} = cos({p})", {"p": "a", "q": "x", "r": "b"}),
        ("{p} = sin(...)\n...\n{q} = sin({r})\nreturn ({q},)", {"p": "a", "q": "c", "r": "b"}),
        ("{p} = sin(b)", {"p": "c"}),
        ("{_} = sin({_})\n{_} = cos({_})", {}),
        ("x: ...\nnot: ... = cos(x)\nreturn ...", {}),
        ("not: ... = tan(...)", {}),
        ("b = ...\nnot: ... = cos(...)", {}),
    ],
)
def test_a_pattern_matches(pattern: str, names: dict[str, str]) -> None:
    found = match(GRAPH, pattern)
    assert found.names == names, found.text


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        (
            "{p} = tan({q})",
            ["line 1 of the pattern is not in the graph: {p} = tan({q})", "nearest is a: f32[2] = sin(x)"],
        ),
        (
            "{p} = sin(x)\n{q} = sin({p})",
            [
                "line 2 of the pattern is not right behind the line before it",
                "there is b: f32[2] = cos(a)",
                "with p = a",
            ],
        ),
        (
            "{p} = sin(x)\n...\n{q} = sin({p})",
            ["line 3 of the pattern is not behind", "nearest is c: f32[2] = sin(b)", "> b: f32[2] = cos(a)"],
        ),
        ("b = cos(a)\n...\na = sin(x)", ["line 3 of the pattern is not behind the line before it"]),
        ("return ...\n...\na = sin(x)", ["there is no line behind it"]),
        (
            "a = sin(x)\nnot: ... = cos(a)\nc = sin(b)",
            ["line 2 of the pattern says that there is none", "it is b: f32[2]"],
        ),
        (
            "a = ...\nnot: {q} = sin({p})",
            ["line 2 of the pattern says that there is none", "it is c: f32[2]"],
        ),
        ("not: ... = sin(...)", ["it is a: f32[2] = sin(x)"]),
        ("a: f32[3] = sin(x)", ["line 1 of the pattern is not in the graph"]),
        ("{p} = sin(x)\n{p} = cos(a)", ["line 2 of the pattern is not right behind"]),
    ],
)
def test_a_pattern_that_does_not_match_says_where_it_stopped(pattern: str, told: list[str]) -> None:
    found = match(GRAPH, pattern)
    assert found.names is None
    for text in told:
        assert text in found.text


@pytest.mark.parametrize("pattern", ["", "\n ...\n ", "..."])
def test_a_pattern_that_any_graph_has_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="any graph would match"):
        match(GRAPH, pattern)


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("{a = sin(x)", r"line 1: expected {name}, the name a word, got '{a = sin\(x\)' in: {a = sin\(x\)"),
        ("a = ...\n{my-name} = cos(a)", "line 2: .* got '{my-name}'"),
        ("a = ...\nnot: {1} = cos(a)", "line 2: .* got '.1.'"),
        ("a = ...\nnot:", "line 2: expected a line of a graph behind 'not:', got none"),
    ],
)
def test_a_capture_that_is_no_name_is_refused(pattern: str, told: str) -> None:
    with pytest.raises(PatternError, match=f"^{told}"):
        match(GRAPH, pattern)


def test_dicts_in_a_line_are_no_captures() -> None:
    line = "{_} = wrapper(kwargs = {'x': {}, 'out': {y}})"
    with pytest.raises(PatternError, match="^line 1"):
        match(GRAPH, line.replace("{y}", "{y z}"))
    assert match(GRAPH, line).names is None


def test_a_long_graph_is_searched_once_for_each_capture() -> None:
    many = lines(*(f"n{i}: f32[2] = sin(m{i})" for i in range(300)))
    assert match(many, "\n...\n".join(["{_} = sin({_})"] * 12 + ["{_} = cos({_})"])).names is None


def test_a_pattern_holds_of_a_real_graph() -> None:
    gm, _ = functional(lambda x: torch.cat(torch.split(x, [2, 3], 1), 1) * 2, arange(2, 5))
    found = match(Writer().lines(gm), "{s} = aten.split_with_sizes.default({x}, ...)\n...\n{_} = aten.mul...")
    assert found.names == {"s": "split_with_sizes", "x": "arg"}
