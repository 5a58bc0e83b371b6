"""What a session of pytest pays that uses none of the plugin: sessions with and without it, in turn.

    python benchmarks/session_cost.py --pairs 100
    python benchmarks/session_cost.py --pairs 60 --wheel dist/pytest_reinplace-*.whl

The first, where the package is installed as a wheel, compares the plugin with ``-p no:reinplace``. An
editable install pays for its finder as well. The second, where it is not installed, unpacks the wheel into a
folder that one session of each pair has on its path: installed against not installed, pytest's reading of the
wheel's list of files included.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import TypeAlias

Session: TypeAlias = "partial[subprocess.CompletedProcess[str]]"


def main() -> None:
    """Print how many milliseconds a session takes longer with the plugin, as the median of pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100, help="how many sessions of each kind")
    parser.add_argument("--wheel", type=Path, help="compare with sessions in which it is not installed")
    given = parser.parse_args()
    pairs: int = given.pairs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "project")
        folder.mkdir()
        (folder / "test_it.py").write_text("def test_it():\n    pass\n")
        with_it, without = _plain(folder), _plain(folder, "-p", "no:reinplace")
        if given.wheel:
            with_it, without = _installed(folder, given.wheel, Path(name, "site")), _plain(folder)
        _milliseconds(with_it), _milliseconds(without)  # bytecode is written
        above = sorted(_above(number, with_it, without) for number in range(pairs))
    inner = above[pairs // 10 : pairs - pairs // 10]
    error = 1.25 * statistics.stdev(inner) / len(above) ** 0.5
    print(f"{statistics.median(above):.1f} ms a session, +- {error:.1f} (median of {pairs} pairs)")


def _plain(folder: Path, *options: str) -> Session:
    """Return a session of one empty test in this interpreter."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-P", "-m", "pytest", "-q", *options]
    return partial(subprocess.run, command, cwd=folder, env=environment, capture_output=True, check=True)


def _installed(folder: Path, wheel: Path, site: Path) -> Session:
    """Return a session that has the wheel on its path as well; fails where one is installed already."""
    if importlib.util.find_spec("pytest_reinplace"):
        raise SystemExit(f"{sys.executable} has the package already; run --wheel where it is not installed")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    session = _plain(folder)
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(site)]))
    session.keywords["env"]["PYTHONPATH"] = path
    seen = subprocess.run([*session.args[0], "--version", "--version"], **session.keywords, text=True)
    if "reinplace" not in seen.stdout + seen.stderr:
        raise SystemExit(f"pytest does not load the plugin from {wheel}: {seen.stdout}{seen.stderr}")
    return session


def _above(number: int, with_it: Session, without: Session) -> float:
    """Return the difference of one pair; which of the two runs first alternates, as caches favour one."""
    if number % 2:
        last = _milliseconds(without)
        return _milliseconds(with_it) - last
    first = _milliseconds(with_it)
    return first - _milliseconds(without)


def _milliseconds(session: Session) -> float:
    """Run a session; returns milliseconds of wall time."""
    start = time.perf_counter()
    session()
    return 1e3 * (time.perf_counter() - start)


if __name__ == "__main__":
    main()
