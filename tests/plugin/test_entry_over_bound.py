"""The key ``max_peak_over_bound`` of corpus entries: how many times its lower bound a call may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_reinplace.entry.entry import EntryError, load

from .entries import ABOVE_BOUND, LOWERED, run, written

pytestmark = pytest.mark.usefixtures("unoptimized")


def test_an_entry_that_holds_as_often_as_it_may_passes(exact: pytest.Pytester) -> None:
    run(exact, ABOVE_BOUND, "max_peak_over_bound: 1.0625", LOWERED).assert_outcomes(passed=1)


def test_one_that_holds_more_says_what_is_held_and_where_the_limit_is(exact: pytest.Pytester) -> None:
    preset = "presets: {cpu: {backend: inductor, max_peak_over_bound: {exact: 1.06}}}"
    result = run(exact, ABOVE_BOUND, preset)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "model on cpu: the peak, 544 B, is 1.062 times its lower bound, 512 B; the limit is "
            "max_peak_over_bound=1.06 (pass exact, backend inductor)",
            "  measured peak 544 B = 544 B that [[]fw *] holds; unexplained: 0 B",
            "  lower bound 512 B by [[]fw *]: extern_kernels.mm(*",
            "  at the peak [[]fw *] runs: *",
            "hold less of what is listed, or raise max_peak_over_bound in *model.reinplace.yaml",
        ]
    )
    assert "--reinplace-update-clones" not in result.stdout.str()


def test_it_is_no_limit_of_other_passes_nor_where_nothing_is_lowered(exact: pytest.Pytester) -> None:
    run(exact, ABOVE_BOUND, "max_peak_over_bound: {inductor: 1}", LOWERED).assert_outcomes(passed=1)
    run(exact, ABOVE_BOUND, "max_peak_over_bound: 1").assert_outcomes(passed=1)  # backend graph


def test_what_has_no_lower_bound_fails(exact: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TORCHELASTIC_RUN_ID": "1",
        "WORLD_SIZE": "2",
        "RANK": "0",
        "LOCAL_RANK": "0",
    }.items():
        monkeypatch.setenv(name, value)
    result = run(exact, ABOVE_BOUND, "max_peak_over_bound: 2", LOWERED)
    result.assert_outcomes(failed=1)
    text = "the peak cannot be held against its lower bound: several processes run it"
    result.stdout.fnmatch_lines([f"model on cpu: {text} (pass exact, backend inductor)"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "max_peak_over_bound: 0.9",
            ":3: expected key 'max_peak_over_bound' to be a finite number of at least 1",
        ),
        ("max_peak_over_bound: yes", "no call holds less than its lower bound, got bool True"),
        ("max_peak_over_bound: .inf", "a finite number of at least 1"),
        ("max_peak_over_bound: '2'", "a finite number of at least 1"),
        (
            "max_peak_over_bound: {exakt: 2}",
            ":3: unknown pass 'max_peak_over_bound.exakt': did you mean 'exact'",
        ),
        (
            "max_peak_over_bound: {exact: 0}",
            "key 'max_peak_over_bound.exact' to be a finite number of at least 1",
        ),
        (
            "presets: {cpu: {max_peak_over_bound: 2}}",
            ":3: 'max_peak_over_bound' does not go with backend graph, which lowers nothing; add 'backend: ",
        ),
        (
            "ahead_of_time: true\nmax_peak_over_bound: 2",
            ":4: 'max_peak_over_bound' does not go with 'ahead_of_time: true': no lower bound of a library",
        ),
        (
            "ahead_of_time: true\npresets: {cuda: {max_peak_over_bound: 2}}",
            ":4: 'max_peak_over_bound' does not go with 'ahead_of_time: true'",
        ),
    ],
)
def test_a_wrong_value_names_file_and_line(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, ABOVE_BOUND, text)
    with pytest.raises(EntryError) as raised:
        load(path)
    assert told in str(raised.value)


def test_a_preset_s_own_is_in_the_place_of_the_entry_s(tmp_path: Path) -> None:
    more = "max_peak_over_bound: 2\npresets: {cpu: {}, cuda: {max_peak_over_bound: {exact: 1.5}}}"
    presets = load(written(tmp_path, ABOVE_BOUND, more)).presets
    assert [presets["cpu"].peak_over_bound(name) for name in ("exact", "inductor")] == [2, 2]
    assert [presets["cuda"].peak_over_bound(name) for name in ("exact", "inductor")] == [1.5, None]
