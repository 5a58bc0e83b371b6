"""The fixture assert_clones."""

from __future__ import annotations

import pytest


def run(project: pytest.Pytester, body: str) -> pytest.RunResult:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    project.makepyfile(
        test_it=f"import torch\nfrom programs import *\n\ndef test_it(assert_clones):\n{lines}\n"
    )
    return project.runpytest_inprocess()


KEEP = "torch.compile(keep)(*inputs(keep))\n"
CALL = "torch.compile(call_op)(*inputs(call_op))\n"


@pytest.mark.parametrize("prefix", ["", "assert "])
def test_equal_lists_pass(compiling: pytest.Pytester, prefix: str) -> None:
    run(compiling, KEEP + CALL + f"{prefix}assert_clones == ['aten::index_put.self']").assert_outcomes(
        passed=1
    )


@pytest.mark.parametrize("prefix", ["", "assert "])
def test_a_difference_raises_by_itself(compiling: pytest.Pytester, prefix: str) -> None:
    result = run(compiling, KEEP + CALL + f"{prefix}assert_clones == []")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E   *AssertionError: 1 unexpected clone: aten::index_put.self (pass inductor, backend graph)",
            "E   * aten::index_put.self at programs.py:*: 32 B, the old value is still read after this write",
            "E   * held back by sum_1 (aten::sum) at programs.py:*; hint: *",
            "E   * if that is right, --reinplace-update-clones writes the list",
        ],
        consecutive=True,
    )


def test_a_missing_clone_is_named_with_both_lists(compiling: pytest.Pytester) -> None:
    result = run(compiling, CALL + "assert_clones == ['mylib::scale.x']")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *1 expected clone is missing: mylib::scale.x (*",
            "E *expected [[]'mylib::scale.x']",
            "E *got * [[][]]",
        ]
    )


def test_a_label_counts_as_often_as_it_is_listed(compiling: pytest.Pytester) -> None:
    twice = KEEP + "torch.compile(keep)(torch.ones(3))\n"
    run(compiling, twice + "assert_clones == ['aten::index_put.self'] * 2").assert_outcomes(passed=1)
    result = run(compiling, twice + "assert_clones == ['aten::index_put.self']")
    result.stdout.fnmatch_lines(["E *1 unexpected clone: aten::index_put.self (*"])


def test_a_call_means_only_what_it_compiles(compiling: pytest.Pytester) -> None:
    body = KEEP + "assert assert_clones(call_op, *inputs(call_op)) == []\nassert len(assert_clones) == 1"
    run(compiling, body).assert_outcomes(passed=1)
    result = run(compiling, CALL + "assert_clones(keep, *inputs(keep)) == []")
    result.stdout.fnmatch_lines(["E *1 unexpected clone: aten::index_put.self (*"])


def test_the_backward_is_seen(compiling: pytest.Pytester) -> None:
    body = """
loss = torch.compile(read_row)(*inputs(read_row))
loss.backward()
assert assert_clones == ["aten::select_scatter.self"]
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_it_is_iterated_counted_and_searched(compiling: pytest.Pytester) -> None:
    body = KEEP + CALL + "assert list(assert_clones) == ['aten::index_put.self']\n"
    body += "assert 'aten::index_put.self' in assert_clones\nassert len(assert_clones) == 1\n"
    body += "assert 'plugintest::write.out' not in assert_clones\nassert [*map(str.upper, assert_clones)]"
    run(compiling, body).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("assert_clones != []", "TypeError: expected clones to be compared by ==, got !=*"),
        ("assert_clones", "TypeError: expected assert_clones == [[]...[]], got assert_clones alone*"),
        ("not assert_clones", "TypeError: expected assert_clones == [[]...[]], got assert_clones alone*"),
        (
            "'mylib::no.x' not in assert_clones",
            "AssertionError: no candidate is called 'mylib::no.x'; valid are *",
        ),
        ("3 not in assert_clones", "TypeError: expected a label as a string, got 3"),
    ],
)
def test_what_might_hold_for_another_reason_is_an_error(
    compiling: pytest.Pytester, text: str, error: str
) -> None:
    result = run(compiling, KEEP + f"assert {text}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *{error}"])


@pytest.mark.parametrize(
    "text", ["len(assert_clones) == 0", "'mylib::op.x' not in assert_clones", "not list(assert_clones)"]
)
def test_nothing_holds_where_nothing_was_compiled(compiling: pytest.Pytester, text: str) -> None:
    result = run(compiling, f"assert {text}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *no graph was compiled, so the pass was not exercised:*"])


@pytest.mark.parametrize(
    "body", ["pass", CALL, "repr(assert_clones)", "assert_clones(call_op, *inputs(call_op))"]
)
def test_a_passing_test_that_never_asks_fails_at_teardown(compiling: pytest.Pytester, body: str) -> None:
    result = run(compiling, body)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["assert_clones* was *: write assert_clones*"])


def test_an_error_at_teardown_comes_without_the_trace_log_of_torch(compiling: pytest.Pytester) -> None:
    body = """
import logging
record = logging.LogRecord("torch.__trace", logging.DEBUG, "utils.py", 2350, "", (), None)
logging.getLogger().handle(record)  # as torch does hundreds of times in its first compilations
logging.getLogger("mine").error("seen")
"""
    result = run(compiling, body + CALL)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["ERROR * mine:*seen"])
    result.stdout.no_fnmatch_line("*torch.__trace*")


def test_a_call_whose_clones_nobody_compares_is_told_as_one(compiling: pytest.Pytester) -> None:
    asked = "assert_clones(call_op, *inputs(call_op)) == []\n"
    result = run(compiling, f"{asked}assert_clones(call_op, *inputs(call_op))")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["assert_clones(...) was called, and what it returned was compared with nothing: write assert_*"]
    )
    result.stdout.no_fnmatch_line("*never used*")


def test_what_is_searched_for_is_explained(compiling: pytest.Pytester) -> None:
    result = run(compiling, KEEP + CALL + "assert 'self' not in assert_clones")
    result.stdout.fnmatch_lines(
        [
            "E * 1 clone bears the name 'self' (pass inductor, backend graph)",
            "E * aten::index_put.self at programs.py:*: 32 B, the old value is still read after this write",
        ]
    )
    result = run(compiling, KEEP + CALL + "assert 'out' in assert_clones")
    result.stdout.fnmatch_lines(["E * no clone bears the name 'out' (*", "E * aten::index_put.self *"])


@pytest.mark.parametrize(
    ("body", "outcomes"),
    [("assert False", {"failed": 1}), ("import pytest; pytest.skip('later')", {"skipped": 1})],
)
def test_one_that_did_not_pass_is_left_alone(
    compiling: pytest.Pytester, body: str, outcomes: dict[str, int]
) -> None:
    run(compiling, body).assert_outcomes(**outcomes)


@pytest.mark.parametrize(
    "text", ["assert_clones == []", "len(assert_clones) == 0", "list(assert_clones) == []"]
)
def test_a_write_that_our_analysis_forbids_fails(forced: pytest.Pytester, text: str) -> None:
    result = run(forced, KEEP + f"assert {text}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E *graph * is miscompiled: aten::index_put.self in place although our *; on its first call *"]
    )
    result.stdout.no_fnmatch_line("*--reinplace-update-clones*")  # nothing that is to be expected


@pytest.mark.parametrize("expected", ["[]", "['aten::index_put.self']"])
def test_nothing_compiled_fails_whatever_is_expected(compiling: pytest.Pytester, expected: str) -> None:
    result = run(compiling, f"assert assert_clones == {expected}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *no graph was compiled, so the pass was not exercised:*"])


def test_no_candidate_fails(compiling: pytest.Pytester) -> None:
    result = run(compiling, "assert_clones(pure, torch.ones(1)) == []")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *no candidate in 1 compiled graph, so the pass was not exercised:*"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("== 'aten::x.self'", "got 'aten::x.self': write assert_clones == ['aten::x.self']"),
        ("== 3", "got 3: write len(assert_clones) == 3"),
        ("== 0", "got 0: write assert_clones == []"),
        ("== None", "got None"),
        ("== [3]", "got 3"),
        ("== {'aten::x.self': 2}", "got {'aten::x.self': 2}: list each label as often as it is cloned"),
        ("<= 2", "got assert_clones <= 2: write len(assert_clones) <= 2"),
        ("< 2", "got assert_clones < 2: write len(assert_clones) < 2"),
        (">= 2", "got assert_clones >= 2: write len(assert_clones) >= 2"),
        ("> []", "got assert_clones > []"),
    ],
)
def test_anything_but_labels_is_refused(compiling: pytest.Pytester, text: str, told: str) -> None:
    result = run(compiling, KEEP + f"assert_clones {text}")
    (line,) = [line for line in result.outlines if line.startswith("E ")]
    assert line.startswith("E       TypeError: expected ") and line.endswith(f", {told}")


@pytest.mark.parametrize("asked", ["len(assert_clones) == 1", "len(assert_clones) <= 2"])
def test_what_is_to_be_written_instead_holds(compiling: pytest.Pytester, asked: str) -> None:
    run(compiling, KEEP + f"assert {asked}").assert_outcomes(passed=1)
