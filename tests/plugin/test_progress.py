"""The line behind a test's name that says what a long test is doing."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pytest

from pytest_reinplace.base.progress import Progress

from .programs import PROGRAMS
from .screen import printed, shown

# What a test compiles is not the point here; that it takes its time is.
SLOW = """
import sys, time
from pytest_reinplace.base import progress

def test_slow(request, capsys):
    found = progress.of(request.config)
    with found.compiling():
        print("captured")
        time.sleep(1.4)
    with found.measuring(20) as at:
        for number in (11, 12):
            at(number)
            time.sleep(0.6)
    assert capsys.readouterr().out == "captured\\n"

def test_quick():
    pass
"""

CAPSYS = """    assert capsys.readouterr().out == "captured\\n"\n"""


def pytest_(folder: Path, *args: str, typed: str = "", columns: int = 100) -> str:
    plugins = "pytest_reinplace.plugin,xdist.plugin" if "-n1" in args else "pytest_reinplace.plugin"
    return printed(
        "-m",
        "pytest",
        "-pno:cacheprovider",
        *args,
        cwd=folder,
        typed=typed,
        columns=columns,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        PYTEST_PLUGINS=plugins,
    )


def test_a_terminal_shows_it_and_has_it_back_in_the_end(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SLOW)
    text = pytest_(tmp_path, "-v")
    assert re.search(r"test_it.py::test_slow compile 1\.\d s\x08", text), text
    assert re.search(r"compile 1\.\d s · measure 12/20\x08", text), text
    lines = shown(text)
    assert [line for line in lines if "::test" in line] == [
        f"test_it.py::test_slow PASSED{'[ 50%]':>71}",
        f"test_it.py::test_quick PASSED{'[100%]':>70}",
    ]
    assert not any("compile" in line or "measure" in line for line in lines)


@pytest.mark.parametrize("args", [(), ("-q",), ("-v", "-s"), ("-v", "-n1"), ("-v", "-olog_cli=true")])
def test_without_v_or_with_others_at_the_terminal_nothing_is_shown(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    if "-n1" in args:
        pytest.importorskip("xdist")
    (tmp_path / "test_it.py").write_text(SLOW.replace(CAPSYS, ""))
    text = pytest_(tmp_path, *args)
    assert "2 passed" in text
    assert "compile" not in text
    assert "\b" not in text


def test_without_a_terminal_nothing_is_shown(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SLOW)
    result = pytester.runpytest_subprocess("-v", "-pno:hypothesispytest")
    result.assert_outcomes(passed=2)
    assert "compile" not in result.stdout.str() + result.stderr.str()


def test_where_there_is_no_room_nothing_is_shown(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SLOW)
    text = pytest_(tmp_path, "-v", columns=30)
    assert "2 passed" in text
    assert "compile" not in text


def test_a_debugger_has_the_terminal_for_itself(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pytest, time\n\n@pytest.hookimpl(trylast=True)\n"
        "def pytest_enter_pdb():\n    print('entered')\n    time.sleep(1.5)\n    print('left')\n"
    )
    (tmp_path / "test_it.py").write_text(
        SLOW.replace('print("captured")', "breakpoint()").replace(CAPSYS, "")
    )
    text = pytest_(tmp_path, "-v", typed="c\n")
    assert "2 passed" in text
    assert re.search(r"entered\s+left", text), text


def test_compiling_is_what_inductor_does(tmp_path: Path) -> None:
    (tmp_path / "programs.py").write_text(PROGRAMS)
    (tmp_path / "slow.py").write_text("import time\n\ndef slow(gm):\n    time.sleep(1.6)\n")
    (tmp_path / "test_it.py").write_text(
        "import sys; sys.path.insert(0, '.')\n"
        "from programs import *\n\n"
        "def test_it(reinplace):\n    reinplace.run(keep, *inputs(keep))\n"
    )
    text = pytest_(tmp_path, "-v", "--reinplace-backend=graph", "--reinplace-pass=slow:slow")
    assert re.search(r"test_it.py::test_it compile \d+\.\d s\x08", text), text
    assert any(line.startswith("test_it.py::test_it PASSED  ") for line in shown(text))


@pytest.fixture
def terminal() -> io.StringIO:
    return io.StringIO()


def test_a_shorter_text_leaves_nothing_of_a_longer_one(terminal: io.StringIO) -> None:
    terminal.write("name ")
    progress = Progress(terminal, lambda: 50, patience=0)
    with progress.measuring(100) as at:
        at(100)
        time.sleep(0.3)
        at(1)
        time.sleep(0.3)
        assert shown(terminal.getvalue()) == ["name measure 1/100"]
    assert shown(terminal.getvalue()) == ["name"]
    assert progress.text() == ""


def test_seconds_add_up_until_the_next_test(terminal: io.StringIO) -> None:
    progress = Progress(terminal, lambda: 50, patience=9)
    for _ in range(2):
        with progress.compiling(), progress.compiling():
            time.sleep(0.1)
    assert progress.text() == "compile 0.2 s"
    with progress.measuring(3) as at:
        at(2)
        assert progress.text() == "compile 0.2 s · measure 2/3"
    progress.reset()
    assert progress.text() == ""
    assert terminal.getvalue() == "", "whoever is quick is never shown"


def test_what_raises_is_taken_back_too(terminal: io.StringIO) -> None:
    progress = Progress(terminal, lambda: 50, patience=0)

    @progress.compiling()
    def fail() -> None:
        time.sleep(0.3)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "compile 0." in terminal.getvalue()
    assert shown(terminal.getvalue()) == [""]


def test_a_terminal_that_went_away_takes_no_test_along() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    with Progress(Gone(), lambda: 50, patience=0).compiling():
        time.sleep(0.2)
