"""What a session of pytest pays that uses none of the plugin: sessions with and without it, in turn.

    python benchmarks/session_cost.py --pairs 100

Run it where the package is installed as a wheel: an editable install pays for its finder as well.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    """Print how many milliseconds a session takes longer with the plugin, as the median of pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100, help="how many sessions of each kind")
    pairs: int = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_it.py").write_text("def test_it():\n    pass\n")
        with_it, without = [(), ("-p", "no:reinplace")]
        _session(folder, *with_it), _session(folder, *without)  # bytecode is written
        above = sorted(_above(folder, number, with_it, without) for number in range(pairs))
    inner = above[pairs // 10 : pairs - pairs // 10]
    error = 1.25 * statistics.stdev(inner) / len(above) ** 0.5
    print(f"{statistics.median(above):.1f} ms a session, +- {error:.1f} (median of {pairs} pairs)")


def _above(folder: Path, number: int, with_it: tuple[str, ...], without: tuple[str, ...]) -> float:
    """Return the difference of one pair; which of the two runs first alternates, as caches favour one."""
    if number % 2:
        last = _session(folder, *without)
        return _session(folder, *with_it) - last
    first = _session(folder, *with_it)
    return first - _session(folder, *without)


def _session(folder: Path, *options: str) -> float:
    """Run a session of one empty test; returns milliseconds of wall time."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-P", "-m", "pytest", "-q", *options]
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return 1e3 * (time.perf_counter() - start)


if __name__ == "__main__":
    main()
