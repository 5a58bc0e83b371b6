"""How long our pass takes beside that of another checkout: ``python benchmarks/against.py TREE``.

Each checkout is a process with its own ``benchmarks`` and ``passes``. They take turns in random order on
fresh copies of the same graphs, so a machine that slows down slows both. The collector is off: a pass pauses
it anyway, and which call it comes after is chance. Exit status: the number of families that are slower by
more than ``--limit``.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
from typing import Any

HERE = pathlib.Path(__file__).parents[1]
_WORKER = """
import gc, json, sys, time
from benchmarks.families import FAMILIES
from benchmarks.sides import Ours, copied
graphs = {}
print(json.dumps([f.name for f in FAMILIES]), flush=True)
for line in sys.stdin:
    name, nodes = json.loads(line)
    if name not in graphs:
        family = next(f for f in FAMILIES if f.name == name)
        Ours(copied(family.build(8)[0])).rewrite()
        graphs[name] = family.build(family.size_for(nodes))[0]
    side = Ours(copied(graphs[name]))
    gc.collect(); gc.disable()
    start = time.process_time()
    side.rewrite()
    print(json.dumps(time.process_time() - start), flush=True)
    gc.enable()
"""


class Side:
    """One checkout, in a process of its own.

    Args:
        tree: its top folder.
        room: an empty folder, where its packages are put together as they are installed.

    Attributes:
        families: the names of its families of graphs.
    """

    def __init__(self, tree: pathlib.Path, room: pathlib.Path) -> None:
        package = room / "pytest_reinplace"
        package.mkdir(parents=True)
        parts = [*(tree / "pytest_reinplace").iterdir(), tree / "passes", tree / "corpus"]
        for part in parts:
            (package / part.name).symlink_to(part)
        (room / "benchmarks").symlink_to(tree / "benchmarks")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _WORKER],
            env={**os.environ, "PYTHONPATH": str(room), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.families: list[str] = self._answer()

    def seconds(self, family: str, nodes: int) -> float:
        """Return how long one rewrite takes, in CPU seconds."""
        assert self._process.stdin is not None
        print(json.dumps([family, nodes]), file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of a checkout ended, exit status {self._process.wait()}")
        return json.loads(line)


def main() -> int:
    """Compare all families and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=pathlib.Path, help="the top folder of the other checkout")
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--limit", type=float, default=1.05)
    given = parser.parse_args()
    slower = 0
    with tempfile.TemporaryDirectory() as room:
        ours = Side(HERE, pathlib.Path(room, "ours"))
        other = Side(given.tree.resolve(), pathlib.Path(room, "other"))
        for family in (name for name in ours.families if name in other.families):
            times: dict[Side, list[float]] = {ours: [], other: []}
            for side in random.sample([ours, other] * given.rounds, 2 * given.rounds):
                times[side].append(side.seconds(family, given.nodes))
            new, old = times[ours], times[other]
            ratio, least = statistics.median(new) / statistics.median(old), min(new) / min(old)
            slower += min(ratio, least) > given.limit
            text = f"median {ratio:.2f}, least {least:.2f} of the other's {min(old) * 1000:.0f} ms"
            print(f"{family:18} {text}", flush=True)
    return slower


if __name__ == "__main__":
    sys.exit(main())
