"""The options: one table, three places to set them (command line, environment, ini file)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from .base.choices import backend_name, device_name, pass_name, side_name
from .session.settings import Settings

if TYPE_CHECKING:
    from .compare.limit import Limit

_TRUE = ("1", "true", "yes", "on")
_SOURCES = {".py", ".pyi", ".yaml", ".yml", ".toml", ".ini", ".cfg"}
_FALSE = ("0", "false", "no", "off", "")


# Not a data class: they are made in every session of pytest, in a quarter of the time.
class Option(NamedTuple):
    """One option.

    It is ``--reinplace-NAME`` on the command line, ``REINPLACE_NAME`` in the environment and
    ``reinplace_NAME`` in the ini file; the first of the three that is given wins.

    Args:
        name: the name, with dashes.
        help: one line for ``pytest --help``.
        metavar: what the value is called; empty for a switch, which has none.
        check: returns the parsed value, raises ``ValueError`` saying what was expected.
        many: whether it may be given several times; where it is set elsewhere, spaces separate the values.
    """

    name: str
    help: str
    metavar: str = ""
    check: Callable[[str], Any] = str
    many: bool = False

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return f"--reinplace-{self.name}"

    @property
    def dest(self) -> str:
        """The option in the ini file and in ``config.option``."""
        return f"reinplace_{self.name.replace('-', '_')}"

    @property
    def variable(self) -> str:
        """The option in the environment."""
        return self.dest.upper()


def switch(text: str) -> bool:
    """Return a truth value written as text."""
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(f"expected one of {', '.join((*_TRUE, *_FALSE[:-1]))}, got {text!r}")


def report_path(text: str) -> str:
    """Return a report's path; raises ``ValueError`` for a source file, as where ``=PATH`` was forgotten."""
    if PurePath(text).suffix in _SOURCES:
        raise ValueError(f"expected a file to write a report to, got the source file {text!r}")
    return text


def limit_text(text: str) -> str:
    """Return a limit as it was written; raises ``ValueError`` saying what was expected."""
    from .compare.limit import limit

    return limit(text).text


OPTIONS = (
    Option("report", "print what was reinplaced and cloned, test by test", check=switch),
    Option("json", "write the same, and each graph before and after, as JSON to PATH", "PATH", report_path),
    Option(
        "markdown",
        "write the same as Markdown to PATH, for a comment or $GITHUB_STEP_SUMMARY",
        "PATH",
        report_path,
    ),
    Option(
        "html",
        "write the same, and each graph before and after, as one HTML page to PATH",
        "PATH",
        report_path,
    ),
    Option(
        "pass",
        "the pass under test: inductor (default of tests), exact (ours), post_grad (ours, and our rules) or "
        "package.module:attribute; without it each pass under 'clones' judges an entry",
        "NAME",
        pass_name,
    ),
    Option(
        "backend", "how captured tests compile: inductor, or graph (no code generation)", "NAME", backend_name
    ),
    Option("device", "the device of corpus entries, and reinplace.device: cpu or cuda", "NAME", device_name),
    Option(
        "verify",
        "run every compiled graph before and after the passes on its real inputs, and fail the test where "
        "they differ",
        check=switch,
    ),
    Option(
        "verify-rules",
        "hold what each rule, and each pass without rules, of Inductor's joint and post-grad stages does "
        "against the graph just before it, on real inputs, and fail the test where they differ",
        check=switch,
    ),
    Option("ledger", "record what each pass and each rule does to the graphs, for the reports", check=switch),
    Option(
        "memory",
        "record what Inductor's programs hold in each call that reinplace.run or assert_peak measures: "
        "static peak, lower bound, measured peak",
        check=switch,
    ),
    Option(
        "compare", "compare with the JSON report at PATH, and fail the run when a limit is exceeded", "PATH"
    ),
    Option(
        "fail-on",
        "with --reinplace-compare or --reinplace-measure: how much a figure may grow; clones:0, "
        "peak_bytes:4MiB, or a percentage; new_clones:0, removed_tests:0, copies:0, copy_bytes:4MiB, "
        "static_peak:1%, pass_copies:0, pass_seconds:20%, matches:RULE:0 with --reinplace-compare only",
        "METRIC:LIMIT",
        limit_text,
        many=True,
    ),
    Option(
        "measure",
        "measure corpus entries eagerly, with Inductor's pass and with the pass under test, and compare them "
        "with the baselines of this device",
        check=switch,
    ),
    Option(
        "against",
        "measure, and compare the pass under test with another side of the same run: inductor or eager",
        "NAME",
        side_name,
    ),
    Option(
        "baseline-dir",
        "the folder of the baselines, one file for each device (default: baselines beside the entries)",
        "PATH",
    ),
    Option(
        "update",
        "measure as well, record what was measured as the device's baselines, rewrite expected clones as "
        "--reinplace-update-clones does, and write the graphs of assert_graph",
        check=switch,
    ),
    Option(
        "update-new-only",
        "measure as well, and record baselines of entries that have none; nothing is rewritten",
        check=switch,
    ),
    Option(
        "update-clones",
        "rewrite the clones that tests and corpus entries expect, in their files, to those that came",
        check=switch,
    ),
    Option(
        "update-diff",
        "print the clones and graphs that --reinplace-update would write, as a unified diff; none is written",
        check=switch,
    ),
    Option("disable", "observe nothing; tests that need the plugin are skipped", check=switch),
)


def add_options(parser: pytest.Parser) -> None:
    """Register the options with pytest. No option takes an optional value, and every default is ``None``."""
    group = parser.getgroup("reinplace", "reinplacing of torch.compile")
    for option in OPTIONS:
        text = f"{option.help} (environment: {option.variable}, ini: {option.dest})".replace("%", "%%")
        if option.many:
            group.addoption(
                option.flag,
                dest=option.dest,
                default=None,
                action="append",
                metavar=option.metavar,
                help=text,
            )
        elif option.metavar:
            group.addoption(option.flag, dest=option.dest, default=None, metavar=option.metavar, help=text)
        else:
            group.addoption(option.flag, dest=option.dest, default=None, action="store_true", help=text)
        parser.addini(option.dest, option.help, type="string", default="")


def resolve(config: pytest.Config, environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the options that are in force, and store them on ``config.option`` for every reader.

    Raises:
        pytest.UsageError: a value is wrong; names the option, where it was set and what was expected.
    """
    # A worker is given what its controller has settled, wherever that was set.
    typed = not hasattr(config, "workerinput") and config.getoption("reinplace_fail_on", default=None)
    values = {option.dest: _value(option, config, environment) for option in OPTIONS}
    for dest, value in values.items():
        setattr(config.option, dest, value)
    settings = _settings(values)
    if typed and settings.compare is None and not settings.measures:
        raise pytest.UsageError(
            "--reinplace-fail-on: expected --reinplace-compare=PATH or --reinplace-measure with it, got none"
        )
    held = next((one.metric for one in settings.fail_on if one.needs_report), None)
    if typed and settings.compare is None and held:
        raise pytest.UsageError(
            f"--reinplace-fail-on: expected --reinplace-compare=PATH with {held}, got none"
        )
    return settings


def _settings(values: Mapping[str, Any]) -> Settings:
    def path(dest: str) -> Path | None:
        return None if values[dest] is None else Path(values[dest])

    return Settings(
        report=bool(values["reinplace_report"]),
        json=path("reinplace_json"),
        markdown=path("reinplace_markdown"),
        html=path("reinplace_html"),
        pass_name=values["reinplace_pass"],
        backend=values["reinplace_backend"],
        device=values["reinplace_device"],
        verify=bool(values["reinplace_verify"]),
        verify_rules=bool(values["reinplace_verify_rules"]),
        ledger=bool(values["reinplace_ledger"]),
        memory=bool(values["reinplace_memory"]),
        compare=path("reinplace_compare"),
        fail_on=_limits(values["reinplace_fail_on"] or ()),
        measure=bool(values["reinplace_measure"]),
        against=values["reinplace_against"],
        baseline_dir=path("reinplace_baseline_dir"),
        update=bool(values["reinplace_update"]),
        update_new_only=bool(values["reinplace_update_new_only"]),
        update_clones=bool(values["reinplace_update_clones"]),
        update_diff=bool(values["reinplace_update_diff"]),
        disable=bool(values["reinplace_disable"]),
    )


def _limits(texts: Iterable[str]) -> tuple[Limit, ...]:
    if not texts:
        return ()
    from .compare.limit import limit

    return tuple(map(limit, texts))


def _value(option: Option, config: pytest.Config, environment: Mapping[str, str]) -> Any:
    given = config.getoption(option.dest, default=None)
    if given is True:
        return True
    base = config.invocation_params.dir
    if given is not None:
        # Several values of one option hold no spaces, so they are one text as they are in the ini file.
        origin, text = option.flag, " ".join(given) if option.many else str(given)
    elif environment.get(option.variable):
        origin, text = f"environment variable {option.variable}", environment[option.variable]
    else:
        origin, text = f"ini option {option.dest}", str(config.getini(option.dest))
        base = config.rootpath
    if not text and origin != option.flag:
        return None
    try:
        value = [option.check(one) for one in text.split()] if option.many else option.check(text)
    except ValueError as error:
        raise pytest.UsageError(f"{origin}: {error}") from None
    if option.metavar == "PATH":
        if not text:
            raise pytest.UsageError(f"{origin}: expected a path, got an empty one")
        return str(base / text)
    return value
