"""The fixture assert_reinplaced."""

from __future__ import annotations

import pytest


def run(project: pytest.Pytester, body: str, *args: str) -> pytest.RunResult:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    asked = ", ".join(name for name in ("assert_reinplaced", "assert_clones") if name in body)
    head = f"import torch\nfrom programs import *\n\ndef test_it({asked}):\n"
    project.makepyfile(test_it=f"{head}{lines}\n")
    return project.runpytest_inprocess(*args)


def test_a_callable_is_compiled_and_called_and_its_result_returned(compiling: pytest.Pytester) -> None:
    body = """
args = inputs(update)
result = assert_reinplaced(update, *args)
assert result.tolist() == [2, 2]
assert args[0].tolist() == [0, 1, 0, 1, 0, 0, 0, 0]
assert_clones == []
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_a_clone_fails_and_says_why(compiling: pytest.Pytester) -> None:
    result = run(compiling, "assert_reinplaced(keep, *inputs(keep))")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: 1 candidate not in place: aten::index_put.self (pass inductor, backend *",
            "E   * aten::index_put.self at programs.py:*: 32 B, the old value is still read after this write",
            "E   * held back by sum_1 (aten::sum) at programs.py:*; hint: our pass reads it before*",
        ]
    )
    result.stdout.no_fnmatch_line("*torch.__trace*")


@pytest.mark.parametrize(
    "name", ["plugintest::write.out", "out", "plugintest::write", "plugintest::*", "*.out"]
)
def test_a_label_or_a_bare_argument_is_looked_up_in_all_that_was_compiled(
    compiling: pytest.Pytester, name: str
) -> None:
    body = f"""
torch.compile(keep)(*inputs(keep))
torch.compile(call_op)(*inputs(call_op))
assert_reinplaced({name!r})
"""
    run(compiling, body).assert_outcomes(passed=1)


@pytest.mark.parametrize("name", ["aten::index_put.self", "self"])
def test_a_named_candidate_that_is_cloned_fails(compiling: pytest.Pytester, name: str) -> None:
    body = f"""
torch.compile(keep)(*inputs(keep))
torch.compile(call_op)(*inputs(call_op))
assert_reinplaced("out", {name!r})
"""
    result = run(compiling, body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E   *1 candidate not in place: aten::index_put.self (pass*"])


def test_an_unknown_name_fails_and_lists_the_candidates(compiling: pytest.Pytester) -> None:
    result = run(compiling, "torch.compile(call_op)(*inputs(call_op))\nassert_reinplaced('cache')")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *no candidate is called 'cache'; valid are 'plugintest::write.out' (*"])


def test_without_arguments_all_that_was_compiled_is_meant(compiling: pytest.Pytester) -> None:
    run(compiling, "torch.compile(update)(*inputs(update))\nassert_reinplaced()").assert_outcomes(passed=1)
    both = "torch.compile(update)(*inputs(update))\ntorch.compile(keep)(*inputs(keep))\nassert_reinplaced()"
    run(compiling, both).assert_outcomes(failed=1)


@pytest.mark.parametrize("call", ["assert_reinplaced()", "assert_reinplaced('out')"])
def test_nothing_compiled_fails(compiling: pytest.Pytester, call: str) -> None:
    result = run(compiling, f"update(*inputs(update))\n{call}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *no graph was compiled, so the pass was not exercised:*"])


def test_no_candidate_fails(compiling: pytest.Pytester) -> None:
    result = run(compiling, "assert_reinplaced(pure, *inputs(pure))")
    result.assert_outcomes(failed=1)
    writes = "the graph writes nothing: no mutating operator, index_put or view scatter"
    result.stdout.fnmatch_lines(
        [f"E *no candidate in 1 compiled graph, so the pass was not exercised: {writes}*"]
    )


def test_each_call_is_judged_by_itself_and_compiled_afresh(compiling: pytest.Pytester) -> None:
    body = """
torch.compile(keep)(*inputs(keep))
for size in (8, 16, 32):
    assert_reinplaced(call_op, torch.zeros(size), torch.ones(4))
assert assert_clones == ["aten::index_put.self"]
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_a_compiled_callable_keeps_its_options(compiling: pytest.Pytester) -> None:
    body = """
from pytest_reinplace.passes import inductor_options
x, row = inputs(read_row)
fast = torch.compile(read_row, options=inductor_options())
fast(x, row).backward()
assert_reinplaced("aten::select_scatter.self")
fast = torch.compile(call_op, options=inductor_options())
assert_reinplaced(fast, *inputs(call_op))
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_a_module_is_a_callable(compiling: pytest.Pytester) -> None:
    body = """
class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(8))
    def forward(self, value):
        call_op(self.state, value)
        return value * 3
module = Cache()
assert assert_reinplaced(module, torch.ones(4)).tolist() == [3] * 4
assert module.state.sum() == 4
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_other_arguments_are_refused(compiling: pytest.Pytester) -> None:
    result = run(compiling, "assert_reinplaced(3)")
    result.stdout.fnmatch_lines(
        [
            "E *TypeError: expected a callable and its arguments, or labels as strings, got (3,): to check a "
            "call of step(x), write assert_reinplaced(step, x), which calls it"
        ]
    )


def test_a_passing_test_that_never_asks_fails_at_teardown(compiling: pytest.Pytester) -> None:
    result = run(compiling, "torch.compile(call_op)(*inputs(call_op)), assert_reinplaced")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*assert_reinplaced was requested and never used*"])


@pytest.mark.parametrize("arguments", ["keep, *inputs(keep)", "'aten::index_put.self'", ""])
def test_a_write_that_our_analysis_forbids_fails(forced: pytest.Pytester, arguments: str) -> None:
    result = run(forced, f"torch.compile(keep)(*inputs(keep))\nassert_reinplaced({arguments})")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E *graph * is miscompiled: aten::index_put.self in place although our *; on its first call *"]
    )


BROKEN = """
import torch

@torch.library.custom_op("plugintest::refuse", mutates_args={"y"})
def refuse(y: torch.Tensor) -> None:
    raise ValueError("not today")

def prints(x):
    print("hi")
    return x + 1

def refused(x):
    y = x + 1
    refuse(y)
    return y
"""


def test_a_graph_break_is_told_by_its_line(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(broken=BROKEN)
    result = run(compiling, "import broken\nassert_reinplaced(broken.prints, torch.ones(2))")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            'E *AssertionError: broken.py:8: `print("hi")` breaks the graph: *',
            "E   * Explanation: *",
            "E   * assert_reinplaced(fn, ...) compiles with fullgraph=True; to allow graph breaks, call *",
        ]
    )
    assert not [line for line in result.outlines if "/torch/" in line]
    run(
        compiling, "import broken\nassert_reinplaced(torch.compile(broken.prints), torch.ones(2))"
    ).stdout.fnmatch_lines(["E *no candidate in *"])


def test_an_error_of_the_program_keeps_its_own_frames(compiling: pytest.Pytester) -> None:
    compiling.makepyfile(broken=BROKEN)
    result = run(compiling, "import broken\nassert_reinplaced(broken.refused, torch.ones(2))")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["broken.py:5: ValueError"])
    assert not [line for line in result.outlines if "/torch/" in line and "Error" in line]


def test_another_backend_is_named(compiling: pytest.Pytester) -> None:
    result = run(compiling, "torch.compile(update, backend='eager')(*inputs(update))\nassert_reinplaced()")
    result.stdout.fnmatch_lines(
        ["E *no graph reached Inductor, so *: torch.compile was called with backend='eager' (pass *"]
    )
