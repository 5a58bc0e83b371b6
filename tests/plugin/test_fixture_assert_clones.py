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
        ]
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
assert list(assert_clones) == []
loss.backward()
assert assert_clones == ["aten::select_scatter.self"]
"""
    run(compiling, body).assert_outcomes(passed=1)


def test_inequality_never_raises(compiling: pytest.Pytester) -> None:
    body = KEEP + "assert assert_clones != []\nassert not assert_clones != ['aten::index_put.self']\n"
    body += "assert list(assert_clones) == ['aten::index_put.self']\n"
    body += "assert 'aten::index_put.self' in assert_clones"
    run(compiling, body).assert_outcomes(passed=1)


@pytest.mark.parametrize("expected", ["[]", "['aten::index_put.self']"])
def test_nothing_compiled_fails_whatever_is_expected(compiling: pytest.Pytester, expected: str) -> None:
    result = run(compiling, f"assert assert_clones == {expected}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *no graph was compiled, so the pass was not exercised:*"])


def test_no_candidate_fails(compiling: pytest.Pytester) -> None:
    result = run(compiling, "assert_clones(pure, torch.ones(1)) == []")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *no candidate in 1 compiled graph, so the pass was not exercised:*"])


@pytest.mark.parametrize("expected", ["'aten::index_put.self'", "3", "[3]"])
def test_anything_but_labels_is_refused(compiling: pytest.Pytester, expected: str) -> None:
    result = run(compiling, KEEP + f"assert_clones == {expected}")
    result.stdout.fnmatch_lines(["E *TypeError: expected *labels*"])
