"""The key ``copies`` of corpus entries: the copies that lowering may add."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_reinplace.entry.entry import EntryError, load

from .entries import COPYING, LOWERED, run, written


def test_listed_copies_are_held_against_what_came(exact: pytest.Pytester) -> None:
    run(exact, COPYING, "copies: {exact: ['aten::mm.self'], inductor: []}", LOWERED).assert_outcomes(passed=1)
    result = run(exact, COPYING, "presets: {cpu: {backend: inductor, copies: {exact: []}}}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "model on cpu: 1 unexpected copy: aten::mm.self (pass exact, backend inductor)",
            "  aten::mm.self: 256 B, strides: aten::mm asks for other strides; buf* copies arg*, node mm *",
        ]
    )
    assert "--reinplace-update-clones" not in result.stdout.str()


def test_where_nothing_is_listed_or_lowered_any_copy_is_all_right(exact: pytest.Pytester) -> None:
    run(exact, COPYING, "", LOWERED).assert_outcomes(passed=1)
    run(exact, COPYING, "copies: {inductor: []}", LOWERED).assert_outcomes(passed=1)
    run(exact, COPYING, "copies: {exact: []}").assert_outcomes(passed=1)  # backend graph


def test_a_missing_copy_fails_with_both_lists(exact: pytest.Pytester) -> None:
    result = run(exact, COPYING, "copies: {exact: ['aten::mm.self', 'aten::mm.mat2']}", LOWERED)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["model on cpu: 1 expected copy is missing: aten::mm.mat2 *", "got *'aten::mm.self'*"]
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("copies: []", ":3: expected key 'copies' to be a mapping from pass to list of labels"),
        ("copies: {exakt: []}", ":3: unknown pass 'copies.exakt': did you mean 'exact'"),
        (
            "presets: {cpu: {copies: {exact: []}}}",
            ":3: 'copies' does not go with backend graph, which lowers nothing; add 'backend: inductor'",
        ),
    ],
)
def test_a_wrong_key_names_file_and_line(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, COPYING, text)
    with pytest.raises(EntryError) as raised:
        load(path)
    assert told in str(raised.value)


def test_they_are_laid_over_those_of_the_entry(tmp_path: Path) -> None:
    more = "copies: {exact: [a.b], inductor: [c.d]}\npresets: {cpu: {backend: inductor, copies: {exact: []}}}"
    assert load(written(tmp_path, COPYING, more)).presets["cpu"].copies == {"exact": (), "inductor": ("c.d",)}
