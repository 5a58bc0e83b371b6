"""--reinplace-update-clones: the clone lists of corpus entries, rewritten in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_collect import BUILDERS

UPDATE = "--reinplace-update-clones"
LABEL = "aten::index_put.self"


@pytest.fixture
def corpus(compiling: pytest.Pytester) -> pytest.Pytester:
    compiling.makepyfile(builders=BUILDERS)
    return compiling


def write(project: pytest.Pytester, text: str) -> Path:
    path = project.path / "one.reinplace.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    return path


HEAD = "# ä\nbuilder: builders:keep   # kept\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("clones: {inductor: []} # c\n", f"clones: {{inductor: [{LABEL}]}} # c\n"),
        ("clones:\n  inductor: []  # c\ntags: [a]\n", f"clones:\n  inductor: [{LABEL}]  # c\ntags: [a]\n"),
        ("clones:\n  inductor: [a.b, # c\n    c.d]\n", f"clones:\n  inductor: [{LABEL}]\n"),
        (
            f"clones:\n  inductor: [ # all\n    {LABEL},  # ours\n    c.d]\n",
            f"clones:\n  inductor: [  # all\n      {LABEL},  # ours\n    ]\n",
        ),
        (
            "clones:\r\n  inductor:  # c\r\n  # a\r\n  - a.b # d\r\n# e\r\ntags: [a]\r\n",
            f"clones:\r\n  inductor:  # c\r\n  # a\r\n  - {LABEL}\r\n# e\r\ntags: [a]\r\n",
        ),
        (
            f"clones:\n  inductor:\n    - a.b\n    # ours\n    - '{LABEL}' # d\n    - c.d",
            f"clones:\n  inductor:\n    # ours\n    - '{LABEL}' # d",
        ),
        (
            "clones: {inductor: [a.b]}\npresets:\n  cpu:\n    clones: {inductor: [c.d]}\n",
            f"clones: {{inductor: [a.b]}}\npresets:\n  cpu:\n    clones: {{inductor: [{LABEL}]}}\n",
        ),
        (
            "clones: {inductor: [a.b]}\npresets:\n  cpu: {}\n  cuda:\n    clones: {inductor: [c.d]}\n",
            f"clones: {{inductor: [{LABEL}]}}\n"
            "presets:\n  cpu: {}\n  cuda:\n    clones: {inductor: [c.d]}\n",
        ),
    ],
)
def test_the_list_in_force_is_rewritten_and_the_rest_kept(
    corpus: pytest.Pytester, old: str, new: str
) -> None:
    path = write(corpus, HEAD + old)
    result = corpus.runpytest_inprocess(UPDATE)
    result.assert_outcomes(passed=1)
    assert path.read_bytes().decode() == HEAD + new
    result.stdout.fnmatch_lines(["one.reinplace.yaml: 1 list updated, of *"])
    corpus.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "clones:\n  exact:  # c\n  - a.b\n  # d\n  - c.d\ntags: [a]\n",
            "clones:\n  exact: []  # c\ntags: [a]\n",
        ),
        ("clones:\n  'exact':\n    - a.b", "clones:\n  'exact': []\n"),
        ("clones: {exact: ['a.b']}\n", "clones: {exact: []}\n"),
    ],
)
def test_a_list_may_become_empty(corpus: pytest.Pytester, old: str, new: str) -> None:
    path = write(corpus, "builder: builders:update\n" + old)
    corpus.runpytest_inprocess(UPDATE).assert_outcomes(passed=1)
    assert path.read_text() == "builder: builders:update\n" + new


def test_each_pass_has_its_list_rewritten(corpus: pytest.Pytester) -> None:
    path = write(corpus, HEAD + "clones:\n  exact: [a.b]\n  inductor:\n  - c.d\n")
    corpus.runpytest_inprocess(UPDATE).assert_outcomes(passed=2)
    assert path.read_text() == HEAD + f"clones:\n  exact: [{LABEL}]\n  inductor:\n  - {LABEL}\n"


def test_a_diff_writes_nothing(corpus: pytest.Pytester) -> None:
    path = write(corpus, HEAD + "clones: {inductor: []}\n")
    old = path.read_bytes()
    result = corpus.runpytest_inprocess("--reinplace-update-diff")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"+clones: {{inductor: [[]{LABEL}[]]}}", "*1 list would be updated, of *"])
    assert path.read_bytes() == old


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "builder: builders:keep\nclones: {inductor: &a [], exact: *a}\n",
            "expected a list of its own, got one that an alias shares with another key",
        ),
        (
            "builder: builders:keep\nclones: &a {inductor: []}\npresets: {cpu: {}, cuda: {clones: *a}}\n",
            "expected a list of its own, got one that an alias shares with another key",
        ),
        ("builder: builders:keep\nclones: {inductor: !!seq []}\n", "expected a plain list, got one with *"),
    ],
)
def test_a_list_that_more_hangs_on_is_left_and_named(corpus: pytest.Pytester, text: str, why: str) -> None:
    path = write(corpus, text)
    result = corpus.runpytest_inprocess(UPDATE, "--reinplace-pass=inductor")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"one.reinplace.yaml: left as it is: {why} (of *"])
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("builder: builders:add\nclones: {inductor: [a.b]}\n", []),
        ("builder: builders:update\nclones: {'builders:break_values': [a.b]}\n", []),
        ("builder: builders:keep\nclones: {exact: []}\n", ["--reinplace-pass=inductor"]),
    ],
)
def test_nothing_is_written_without_candidates_where_values_differ_and_where_no_list_is(
    corpus: pytest.Pytester, text: str, options: list[str]
) -> None:
    path = write(corpus, text)
    corpus.runpytest_inprocess(UPDATE, *options)
    assert path.read_text() == text


def test_an_entry_that_changes_while_it_runs_is_not_overwritten(corpus: pytest.Pytester) -> None:
    text = "builder: builders:changing\nclones: {inductor: []}\n"
    path = write(corpus, text)
    writing = f"open({str(path)!r}, 'a').write('tags: [new]\\n')"
    corpus.makepyfile(builders=f"{BUILDERS}\ndef changing(device):\n    {writing}\n    return keep(device)\n")
    result = corpus.runpytest_inprocess(UPDATE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*left as it is: the file has changed since it was read*"])
    assert path.read_text().startswith(text)


def test_update_rewrites_what_it_measures_and_records_it(corpus: pytest.Pytester) -> None:
    path = write(corpus, HEAD + "clones: {exact: [a.b]}\n")
    result = corpus.runpytest_inprocess("--reinplace-update", "--reinplace-backend=graph")
    result.assert_outcomes(passed=1)
    assert path.read_text() == HEAD + f"clones: {{exact: [{LABEL}]}}\n"
    assert (corpus.path / "baselines").is_dir()
    result.stdout.no_fnmatch_line("*not recorded*")
