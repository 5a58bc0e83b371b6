"""Sessions that are long, or end badly: what is known is written, and it is the same whoever ran it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..house.checkout import python
from .documents import graph, in_place, outcome

pytest.importorskip("xdist")

# Records made by hand, as tests that compile leave them: nothing is compiled, and no torch imported.
HEAD = f"""
import json, os, pathlib, signal, time
import pytest

CLONED, IN_PLACE = {[graph(outcome())]!r}, {[graph(in_place())]!r}

def compiled(request, number):
    graphs = CLONED if number % 3 else IN_PLACE
    request.node.user_properties.append(("reinplace", json.dumps(graphs)))
"""
MANY = """
@pytest.mark.parametrize("number", range(1000))
@pytest.mark.parametrize("name", ["a", "b"])
def test_many(request, name, number):
    compiled(request, number)
    assert number % 100
"""
FILES = ("json", "markdown", "html")
PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_reinplace.plugin,xdist.plugin"}


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "pytest", "-q", "-pno:cacheprovider", "--tb=no", "-rN", *args, cwd=folder, **PLUGINS)


def written(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())["tests"]
    return found


def test_two_thousand_tests_give_the_same_report_on_four_workers_as_on_one(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(HEAD + MANY)
    for stem, more in {"one": (), "four": ("-n4",)}.items():
        files = [f"--reinplace-{kind}={stem}.{kind}" for kind in FILES]
        done = run(tmp_path, "--reinplace-report", *files, *more)
        assert "20 failed, 1980 passed" in done.stdout, done.stdout[-2000:] + done.stderr
        assert "2000 tests, 2000 graphs, 2000 candidates, 668 in place, 1332 cloned" in " ".join(
            done.stdout.split()
        )
    for kind in FILES:
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"four.{kind}").read_bytes(), kind
    assert len(written(tmp_path / "four.json")) == 2000


KILLED = """
@pytest.mark.parametrize("number", range(40))
def test_it(request, number):
    compiled(request, number)
    if number == 20:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_that_is_killed_loses_the_test_it_ran_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(HEAD + KILLED)
    done = run(tmp_path, "--reinplace-json=out.json", "-n2")
    assert "1 failed, 39 passed" in done.stdout, done.stdout + done.stderr
    expected = {f"test_it.py::test_it[{number}]" for number in range(40) if number != 20}
    assert set(written(tmp_path / "out.json")) == expected


STOPPED = """
@pytest.mark.parametrize("number", range(8))
def test_it(request, number):
    compiled(request, number)

@pytest.mark.parametrize("number", range(4))
def test_waits(request, number):
    compiled(request, number)
    for _ in range(200):
        pathlib.Path(f"waiting-{number}").touch()
        time.sleep(0.1)
"""


@contextmanager
def started(folder: Path, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a session as the leader of a group of its own, as a shell would: Ctrl-C reaches its workers too."""
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", *args]
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "REINPLACE_"))}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=own | PLUGINS | {"PYTHONSAFEPATH": "1"},
        start_new_session=True,
        # A shell that put this run in the background lets it ignore Ctrl-C, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("args", [(), ("-n2",)])
def test_what_is_known_is_written_where_a_session_is_ended(
    tmp_path: Path, args: tuple[str, ...], number: signal.Signals
) -> None:
    (tmp_path / "test_it.py").write_text(HEAD + STOPPED)
    files = [f"--reinplace-{kind}=out.{kind}" for kind in FILES]
    with started(tmp_path, *files, *args) as process:
        end = time.monotonic() + 60
        while time.monotonic() < end and len(list(tmp_path.glob("waiting-*"))) < max(2 * len(args), 1):
            time.sleep(0.05)
        time.sleep(0.5)  # a worker's last report is on its way
        os.killpg(process.pid, number)
        assert process.wait(60) == pytest.ExitCode.INTERRUPTED
    known = written(tmp_path / "out.json")
    assert {f"test_it.py::test_it[{number}]" for number in range(8)} == set(known)
    assert "test_it.py::test_it[7]" in (tmp_path / "out.html").read_text()
    assert "8 tests" in (tmp_path / "out.markdown").read_text()


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("args", [(), ("-n2",)])
def test_a_path_that_cannot_be_written_is_said_before_the_first_test(
    tmp_path: Path, kind: str, args: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "test_it.py").write_text("def test_it():\n    open('ran', 'w')\n")
    done = run(tmp_path, f"--reinplace-{kind}=file/out", *args)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: --reinplace-{kind}: cannot write {tmp_path / 'file/out'}: " in done.stderr
    assert not (tmp_path / "ran").exists()
