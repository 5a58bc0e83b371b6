"""A hint says what helps whoever asks: following it never leads to the next failure."""

from __future__ import annotations

import re

import pytest

from pytest_reinplace.passes import Outcome, Reason
from pytest_reinplace.passes.reason import listing

MARKED = '@pytest.mark.reinplace(pass_="exact")'
# Our pass copies less here, but copies: two buffers are needed.
BOTH = """
import pytest
import torch
import programs

programs.register()

def both(cache, by):
    new = cache.clone()
    torch.ops.plugintest.write(new, by)
    result = cache @ new
    cache.copy_(new)
    return result

def inputs():
    return torch.ones(4, 4), torch.ones(4, 4) * 2
"""
TEST = """
{marker}
def test_both(assert_clones):
    torch.compile(both)(*inputs())
    assert_clones == {clones}
"""


def outcome(hint: str) -> Outcome:
    return Outcome("a.b", "a", "b", "a_1", reinplaced=False, nbytes=8, reason=Reason.STILL_READ, hint=hint)


def run(project: pytest.Pytester, marker: str, clones: str, *options: str) -> str:
    project.makepyfile(test_it=BOTH + TEST.format(marker=marker, clones=clones))
    result = project.runpytest(*options)
    return "passed" if result.ret == pytest.ExitCode.OK else result.stdout.str()


def test_the_hints_of_a_test_lead_to_one_that_passes(compiling: pytest.Pytester) -> None:
    (marker,) = set(
        re.findall(
            r"instead of \d+ B here and for what follows: (\S+?), in production", run(compiling, "", "[]")
        )
    )
    assert marker == MARKED
    (clones,) = set(re.findall(r"list it: assert_clones == (\[.*\])", run(compiling, marker, "[]")))
    assert run(compiling, marker, clones) == "passed"
    told = run(compiling, "", clones)
    assert "unexpected clone" in told  # without the marker: the list is of one pass


def test_a_list_of_a_pass_that_an_option_names_comes_with_the_marker(compiling: pytest.Pytester) -> None:
    told = run(compiling, "", "[]", "--reinplace-pass=exact")
    assert f"if that is meant, mark the test {MARKED} and list it: assert_clones == ['aten::" in told
    assert "mark the test" not in run(compiling, MARKED, "[]")


def test_the_command_names_its_own_option(
    compiling: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    from pytest_reinplace.command.main import main

    compiling.makepyfile(mine=BOTH)
    ask = ["explain", "mine:both", "--inputs", "mine:inputs", "--backend", "graph"]
    assert main(ask) == 0
    told = capsys.readouterr().out
    assert "for what follows: --pass exact, in production inductor_options(); that copy" in told
    assert main([*ask, "--pass", "exact"]) == 0
    assert f"mark the test {MARKED} and list it: assert_clones == ['aten::" in capsys.readouterr().out


def test_an_entry_is_told_of_its_own_list_and_of_the_option() -> None:
    meant = outcome(f"if that is meant, {listing(['a.b'])}")
    assert meant.asked_by("entry", "inductor").hint == (
        "if that is meant, list it in the entry, at clones.inductor"
    )
    missed = outcome(Reason.MISSED.hint).asked_by("entry").hint
    assert missed == "our pass does not copy: --reinplace-pass=exact, in production inductor_options()"


def test_what_depends_on_nobody_stays() -> None:
    for asker in ("test", "marked test", "entry", "command", "production"):
        kept = outcome(Reason.INPUT_KEPT.hint)
        assert kept.asked_by(asker) == kept  # type: ignore[arg-type]
