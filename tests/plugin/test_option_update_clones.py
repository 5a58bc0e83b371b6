"""--reinplace-update-clones and --reinplace-update-diff: what tests expect is rewritten to what came."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

UPDATE, DIFF = "--reinplace-update-clones", "--reinplace-update-diff"
HEAD = "import pytest, torch\nfrom programs import *\n\n"
KEEP = "torch.compile(keep)(*inputs(keep))"
CALL = "torch.compile(call_op)(*inputs(call_op))"
LABEL = "aten::index_put.self"


def write(project: pytest.Pytester, text: str, name: str = "test_it") -> Path:
    path = project.path / f"{name}.py"
    path.write_text(HEAD + text, encoding="utf-8", newline="")
    return path


def body(path: Path) -> str:
    return path.read_bytes().decode().removeprefix(HEAD)


@pytest.mark.parametrize("prefix", ["", "assert "])
@pytest.mark.parametrize("old", ["[]", "['mylib::gone.x']", '["a.b", "c.d"]', '[\n        "a.b",\n    ]'])
def test_the_literal_at_the_line_is_rewritten_and_the_test_passes(
    compiling: pytest.Pytester, prefix: str, old: str
) -> None:
    text = (
        f"def test_it(assert_clones):  # ä\n    other = []; {KEEP}\n    {prefix}assert_clones == %s  # why\n"
    )
    path = write(compiling, text % old)
    result = compiling.runpytest_inprocess(UPDATE)
    result.assert_outcomes(passed=1)
    quote = "'" if "'" in old else '"'
    assert body(path) == text % f"[{quote}{LABEL}{quote}]"
    result.stdout.fnmatch_lines(
        [
            "*reinplace expected clones*",
            "--- a/test_it.py",
            "+++ b/test_it.py",
            "test_it.py: 1 list updated, *",
        ]
    )
    again = compiling.runpytest_inprocess(UPDATE)
    again.assert_outcomes(passed=1)
    again.stdout.no_fnmatch_line("*reinplace expected clones*")
    compiling.runpytest_inprocess().assert_outcomes(passed=1)


def test_other_forms_and_several_in_one_file(compiling: pytest.Pytester) -> None:
    path = write(
        compiling,
        "def test_it(assert_clones):\n"
        "    assert assert_clones(\n        keep, *inputs(keep)\n    ) == []\n"
        "    assert ['x.y'] == assert_clones(call_op, *inputs(call_op)), [1]\n"
        f"    assert assert_clones == [] and [] == []\n    assert (assert_clones ==\n        ['{LABEL}'])\n",
    )
    compiling.runpytest_inprocess(UPDATE).assert_outcomes(passed=1)
    assert body(path) == (
        "def test_it(assert_clones):\n"
        f'    assert assert_clones(\n        keep, *inputs(keep)\n    ) == ["{LABEL}"]\n'
        "    assert [] == assert_clones(call_op, *inputs(call_op)), [1]\n"
        f'    assert assert_clones == ["{LABEL}"] and [] == []\n    assert (assert_clones ==\n'
        f"        ['{LABEL}'])\n"
    )


def test_comments_of_labels_that_stay_are_kept(compiling: pytest.Pytester) -> None:
    path = write(
        compiling,
        f"def test_it(assert_clones):\r\n    {KEEP}\r\n    assert_clones == [  # all\r\n"
        f"        # of a\r\n        'a.b',  # gone\r\n        # of ours\r\n        '{LABEL}',  # stays\r\n"
        "        # end\r\n    ]\r\n",
    )
    compiling.runpytest_inprocess(UPDATE).assert_outcomes(passed=1)
    assert body(path) == (
        f"def test_it(assert_clones):\r\n    {KEEP}\r\n    assert_clones == [  # all\r\n"
        f"        # of ours\r\n        '{LABEL}',  # stays\r\n        # end\r\n    ]\r\n"
    )


def test_a_list_that_does_not_fit_has_a_line_for_each_label(compiling: pytest.Pytester) -> None:
    calls = [f"    torch.compile(keep, dynamic=False)(torch.ones({size}))" for size in range(3, 8)]
    several = "\n".join(calls)
    path = write(compiling, f"def test_it(assert_clones):\n{several}\n    assert_clones == []\n")
    compiling.runpytest_inprocess(UPDATE).assert_outcomes(passed=1)
    lines = body(path).splitlines()
    begin = lines.index("    assert_clones == [")
    assert set(lines[begin + 1 : -1]) == {f'        "{LABEL}",'}
    assert lines[-1] == "    ]"


def test_a_diff_is_printed_and_nothing_written(compiling: pytest.Pytester) -> None:
    path = write(compiling, f"def test_it(assert_clones):\n    {KEEP}\n    assert_clones == []\n")
    old = path.read_bytes()
    for options in ([DIFF], [DIFF, UPDATE], [DIFF, "--reinplace-update"]):
        result = compiling.runpytest_inprocess(*options)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "-    assert_clones == [[][]]",
                f'+    assert_clones == [[]"{LABEL}"[]]',
                "test_it.py: 1 list would be updated, of test_it.py::test_it",
            ]
        )
        assert path.read_bytes() == old


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("EXPECTED = []\n    assert_clones == EXPECTED", "expected a literal list of strings, got EXPECTED"),
        ("assert_clones == sorted([])", "expected a literal list of strings, got sorted([[][]])"),
        ("assert_clones == ()", "expected a literal list of strings, got ()"),
        ("name = 'a.b'\n    assert_clones == [name]", "expected a literal list of strings, got [[]name[]]"),
        ("assert_clones == [*[]]", "expected a literal list of strings, got [[][*][[][]][]]"),
        ("assert assert_clones == [] == []", "expected assert_clones == [[]...[]] by itself*"),
        ("exec('assert_clones == []')", "expected a file of the project in *"),
    ],
)
def test_anything_else_is_left_and_named(compiling: pytest.Pytester, text: str, why: str) -> None:
    path = write(compiling, f"def test_it(assert_clones):\n    {KEEP}\n    {text}\n")
    old = path.read_bytes()
    result = compiling.runpytest_inprocess(UPDATE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*: left as it is: {why} (of test_it.py::test_it)"])
    result.stdout.no_fnmatch_line("*--reinplace-update-clones writes*")  # it just did not
    assert path.read_bytes() == old


def test_lists_of_a_file_are_told_as_they_stand_in_it(compiling: pytest.Pytester) -> None:
    tests = [f"def test_{i}(assert_clones):\n    {KEEP}\n    assert_clones == []\n" for i in (1, 2, 3)]
    write(compiling, "\n".join(tests))  # lines 6, 10 and 14: as texts these come the other way
    result = compiling.runpytest_inprocess(UPDATE)
    in_order = ", ".join(f"test_it.py::test_{i}" for i in (1, 2, 3))
    result.stdout.fnmatch_lines([f"test_it.py: 3 lists updated, of {in_order}"])


PARAMETRIZED = (
    "@pytest.mark.parametrize('fn', [%s])\ndef test_it(assert_clones, fn):\n"
    "    torch.compile(fn)(*inputs(fn))\n    assert_clones == []\n"
)


@pytest.mark.parametrize("order", ["keep, call_op", "call_op, keep"])
def test_tests_that_disagree_about_one_literal_leave_it(compiling: pytest.Pytester, order: str) -> None:
    """One of them may have passed already, for the literal is right for it: the run fails nevertheless."""
    path = write(compiling, PARAMETRIZED % order)
    old = path.read_bytes()
    result = compiling.runpytest_inprocess(UPDATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["test_it.py:7: left as it is: its tests disagree: * and * came (of test_it.py::*, test_it.py::*)"]
    )
    assert path.read_bytes() == old


def test_a_loop_that_disagrees_with_itself_leaves_the_literal(compiling: pytest.Pytester) -> None:
    path = write(
        compiling,
        "def test_it(assert_clones):\n    for fn in (keep, call_op):\n"
        "        assert assert_clones(fn, *inputs(fn)) == ['a.b']\n",
    )
    old = path.read_bytes()
    compiling.runpytest_inprocess(UPDATE).assert_outcomes(failed=1)
    assert path.read_bytes() == old


def test_tests_that_agree_rewrite_it(compiling: pytest.Pytester) -> None:
    path = write(compiling, PARAMETRIZED % "keep, keep")
    compiling.runpytest_inprocess(UPDATE).assert_outcomes(passed=2)
    assert body(path).endswith(f'assert_clones == ["{LABEL}"]\n')


def test_nothing_is_learned_from_a_graph_that_tells_nothing(compiling: pytest.Pytester) -> None:
    path = write(
        compiling,
        "def test_none(assert_clones):\n    assert_clones == ['a.b']\n\n"
        "def test_no_candidate(assert_clones):\n    torch.compile(torch.add)(torch.ones(2), 1)\n"
        "    assert_clones == ['a.b']\n",
    )
    old = path.read_bytes()
    result = compiling.runpytest_inprocess(UPDATE)
    result.assert_outcomes(failed=2)
    result.stdout.no_fnmatch_line("*reinplace expected clones*")
    assert path.read_bytes() == old


def test_nothing_is_learned_from_a_pass_that_is_suspicious(forced: pytest.Pytester) -> None:
    path = write(forced, f"def test_it(assert_clones):\n    {KEEP}\n    assert_clones == ['a.b']\n")
    old = path.read_bytes()
    result = forced.runpytest_inprocess(UPDATE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*in place although our analysis forbids it*"])
    assert path.read_bytes() == old


def test_a_test_that_fails_for_something_else_or_is_to_fail_leaves_its_list(
    compiling: pytest.Pytester,
) -> None:
    path = write(
        compiling,
        f"def test_it(assert_clones):\n    {KEEP}\n    assert_clones == []\n    assert 1 == 2\n\n"
        f"@pytest.mark.xfail\ndef test_x(assert_clones):\n    {KEEP}\n    assert_clones == []\n",
    )
    old = path.read_bytes()
    result = compiling.runpytest_inprocess(UPDATE)
    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        ["test_it.py:6: left as it is: its test fails for something else (of test_it.py::test_it)"]
    )
    assert path.read_bytes() == old


def test_a_file_that_changes_while_tests_run_is_not_overwritten(compiling: pytest.Pytester) -> None:
    path = write(
        compiling,
        f"def test_it(assert_clones):\n    {KEEP}\n    assert_clones == []\n\n"
        "def test_later():\n    with open(__file__, 'a') as file:\n        file.write('# mine\\n')\n",
    )
    old = path.read_bytes()
    result = compiling.runpytest_inprocess(UPDATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_it.py:6: left as it is: the file has changed since the test ran (*"])
    assert path.read_bytes() == old + b"# mine\n"


def test_a_file_outside_the_project_is_not_touched(
    compiling: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    helper = folder / "elsewhere.py"
    helper.write_text("def check(clones):\n    assert clones == []\n")
    monkeypatch.syspath_prepend(folder)
    body = f"    from elsewhere import check\n    {KEEP}\n    check(assert_clones)\n"
    write(compiling, f"def test_it(assert_clones):\n{body}")
    result = compiling.runpytest_inprocess(UPDATE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"{helper}:2: left as it is: expected a file of the project in *"])
    assert helper.read_text().endswith("== []\n")


def test_mode_and_link_stay(compiling: pytest.Pytester) -> None:
    path = write(compiling, f"def test_it(assert_clones):\n    {KEEP}\n    assert_clones == []\n", "real")
    path.chmod(0o755)
    (compiling.path / "test_link.py").symlink_to(path)
    compiling.runpytest_inprocess(UPDATE, "test_link.py").assert_outcomes(passed=1)
    assert (compiling.path / "test_link.py").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o755
    assert LABEL in path.read_text()


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_workers_hand_over_and_one_process_writes(compiling: pytest.Pytester) -> None:
    one = write(compiling, f"def test_it(assert_clones):\n    {KEEP}\n    assert_clones == []\n", "test_one")
    two = write(compiling, PARAMETRIZED % "keep, call_op", "test_two")
    old = two.read_bytes()
    result = compiling.runpytest_subprocess(UPDATE, "-n2", "--dist=load")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["test_one.py: 1 list updated, *", "test_two.py:7: left as it is: *disagree*"]
    )
    assert body(one).endswith(f'assert_clones == ["{LABEL}"]\n')
    assert two.read_bytes() == old
