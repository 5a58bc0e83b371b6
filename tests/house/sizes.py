"""How many lines each room has: ``python tests/house/sizes.py [FOLDER]`` prints a row for each package.

Needs nothing installed, so that an old checkout can be counted by a new copy of this file.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

# What verifies the pass is no part of it.
BESIDE_THE_PASS = ("verify", "fuzz", "oracle")


def lines_of(folder: Path) -> Counter[str]:
    """Return the lines of Python in each package below a folder, by its path; ``.`` is the folder itself."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*.py"):
        found[path.parent.relative_to(folder).as_posix()] += len(path.read_text().splitlines())
    return found


def of_the_pass(lines: Counter[str]) -> int:
    """Return the lines of the pass itself: all but what verifies it."""
    return sum(n for package, n in lines.items() if package.split("/")[0] not in BESIDE_THE_PASS)


if __name__ == "__main__":
    ROOT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "passes"
    LINES = lines_of(ROOT)
    for name in sorted(LINES):
        files = len(list((ROOT / name).glob("*.py")))
        print(f"{name:28} {files:4} files {LINES[name]:6} lines")
    print(f"{'the pass':28} {of_the_pass(LINES):17} lines")
    print(f"{'all':28} {sum(LINES.values()):17} lines")
