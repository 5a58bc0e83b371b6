"""The table of options: where they may be set, and which place wins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_reinplace.compare.limit import limit
from pytest_reinplace.options import OPTIONS, Option, resolve, switch
from pytest_reinplace.session.settings import Settings

from ..house.checkout import ROOT


def settings(
    pytester: pytest.Pytester, *args: str, ini: str = "", environment: dict[str, str] | None = None
) -> Settings:
    pytester.makeini(f"[pytest]\n{ini}\n")
    return resolve(pytester.parseconfig(*args), environment or {})


def test_nothing_is_set_by_default(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig()
    assert {option.dest: getattr(config.option, option.dest) for option in OPTIONS} == {
        option.dest: None for option in OPTIONS
    }
    assert settings(pytester) == Settings()


def test_the_names_follow_from_one_another() -> None:
    names = {(o.flag, o.variable, o.dest) for o in OPTIONS}
    assert ("--reinplace-pass", "REINPLACE_PASS", "reinplace_pass") in names
    assert all(o.flag.startswith("--reinplace-") for o in OPTIONS)


def test_the_command_line_beats_the_environment_beats_the_ini_file(pytester: pytest.Pytester) -> None:
    ini, environment = "reinplace_pass = a:ini", {"REINPLACE_PASS": "a:environment"}
    assert settings(pytester, ini=ini).pass_name == "a:ini"
    assert settings(pytester, ini=ini, environment=environment).pass_name == "a:environment"
    found = settings(pytester, "--reinplace-pass=exact", ini=ini, environment=environment)
    assert found.pass_name == "exact"


# For every option a value, what Settings holds of it, and a wrong value with what is said of it.
VALUES: dict[str, tuple[str, str, object, str]] = {
    "report": ("1", "report", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "disable": ("on", "disable", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "verify": ("yes", "verify", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "verify-rules": ("1", "verify_rules", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "ledger": ("1", "ledger", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "memory": ("1", "memory", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "json": ("/x.json", "json", Path("/x.json"), ""),
    "markdown": ("/x.md", "markdown", Path("/x.md"), ""),
    "html": ("/x.html", "html", Path("/x.html"), ""),
    "compare": ("/x.json", "compare", Path("/x.json"), ""),
    "pass": (
        "a.b:c",
        "pass_name",
        "a.b:c",
        "expected one of inductor, exact, post_grad or package.module:attribute, got",
    ),
    "backend": ("graph", "backend", "graph", "expected one of inductor, graph, got"),
    "device": ("cuda", "device", "cuda", "expected one of cpu, cuda, got"),
    "measure": ("1", "measure", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "update": ("1", "update", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "update-new-only": ("1", "update_new_only", True, "expected one of 1, true, yes, on, 0, false, no, off,"),
    "update-clones": ("1", "update_clones", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "update-diff": ("1", "update_diff", True, "expected one of 1, true, yes, on, 0, false, no, off, got"),
    "against": ("eager", "against", "eager", "expected one of inductor, eager, got"),
    "baseline-dir": ("/x", "baseline_dir", Path("/x"), ""),
    "fail-on": ("clones:0", "fail_on", (limit("clones:0"),), "expected "),
}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_each_option_can_be_set_in_three_places(pytester: pytest.Pytester, option: Option) -> None:
    text, field, value, refusal = VALUES[option.name]
    with_it = {"REINPLACE_COMPARE": "/x.json"} if option.name == "fail-on" else {}
    flag = f"{option.flag}={text}" if option.metavar else option.flag
    assert getattr(settings(pytester, flag, environment=with_it), field) == value
    assert getattr(settings(pytester, environment={option.variable: text}), field) == value
    assert getattr(settings(pytester, ini=f"{option.dest} = {text}"), field) == value
    assert getattr(settings(pytester), field) == getattr(Settings(), field)
    if not refusal:
        return
    places = {
        "ini option": {"ini": f"{option.dest} = ?"},
        "environment": {"environment": {option.variable: "?"}},
    }
    for place, given in places.items():
        with pytest.raises(pytest.UsageError, match=f"^{place}.*: {re.escape(refusal)}"):
            settings(pytester, **given)
    if option.metavar:
        with pytest.raises(pytest.UsageError, match=f"^{option.flag}: {re.escape(refusal)}"):
            settings(pytester, f"{option.flag}=?", environment=with_it)


def test_the_page_names_each_option() -> None:
    text = (ROOT / "docs" / "options.md").read_text()
    rows = re.findall(r"^\| `(--reinplace-[a-z-]+)", text, re.MULTILINE)
    assert sorted(rows) == sorted(option.flag for option in OPTIONS)


def test_an_empty_variable_is_none(pytester: pytest.Pytester) -> None:
    found = settings(pytester, ini="reinplace_backend = graph", environment={"REINPLACE_BACKEND": ""})
    assert found.backend == "graph"


def test_pyproject_is_an_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\nreinplace_pass = "exact"\nreinplace_report = "true"\n'
    )
    found = resolve(pytester.parseconfig(), {})
    assert (found.pass_name, found.report) == ("exact", True)


def test_switches_are_truth_values(pytester: pytest.Pytester) -> None:
    assert settings(pytester, "--reinplace-report").report
    assert settings(pytester, environment={"REINPLACE_DISABLE": "yes"}).disable
    assert not settings(pytester, ini="reinplace_report = true", environment={"REINPLACE_REPORT": "0"}).report
    assert switch("On")
    assert not switch("")


def test_a_relative_path_is_relative_to_who_said_it(pytester: pytest.Pytester) -> None:
    folder = pytester.mkdir("folder")
    pytester.makeini("[pytest]\nreinplace_json = ini.json\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        by_ini = resolve(pytester.parseconfig(f"--rootdir={pytester.path}", f"-c{pytester.path}/tox.ini"), {})
        by_flag = resolve(pytester.parseconfig("--reinplace-json=x.json"), {})
    assert by_ini.json == pytester.path / "ini.json"
    assert by_flag.json == folder / "x.json"
    assert settings(pytester, "--reinplace-json=/a/b.json").json == Path("/a/b.json")


@pytest.mark.parametrize(
    ("args", "ini", "environment", "message"),
    [
        (["--reinplace-backend=x"], "", {}, "--reinplace-backend: expected one of inductor, graph, got 'x'"),
        ([], "reinplace_backend = x", {}, "ini option reinplace_backend: expected one of"),
        (
            [],
            "",
            {"REINPLACE_PASS": "x"},
            "environment variable REINPLACE_PASS: expected one of inductor, exact",
        ),
        (
            [],
            "",
            {"REINPLACE_REPORT": "maybe"},
            "environment variable REINPLACE_REPORT: expected one of 1, true",
        ),
    ],
)
def test_a_wrong_value_names_its_place(
    pytester: pytest.Pytester, args: list[str], ini: str, environment: dict[str, str], message: str
) -> None:
    with pytest.raises(pytest.UsageError) as caught:
        settings(pytester, *args, ini=ini, environment=environment)
    assert str(caught.value).startswith(message)


def test_resolved_values_are_left_for_other_readers(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig()
    resolve(config, {"REINPLACE_PASS": "exact"})
    assert config.getoption("reinplace_pass") == "exact"


def test_the_help_of_pytest_has_all_options(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--help")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*pass_seconds:20%*"])
