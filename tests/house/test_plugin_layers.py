"""The floors of the plugin: a package stands on those below it, and no module is reached again from itself.

What is imported inside functions and for type checkers counts like any other import.
"""

from __future__ import annotations

import graphlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from .checkout import ROOT, modules
from .imports import Import, imports_of, read_imports

_PLUGIN = "pytest_reinplace"
# From the lowest to the highest; the plugin itself, with what users see of it, is the folder's own modules.
_ROOT = "."
_ORDER = (
    "base",
    "judge",
    "picture",
    "capture",
    "call",
    "entry",
    "record",
    "compare",
    "measure",
    "reports",
    "session",
    _ROOT,
    "command",
)
_MOST_MODULES = 17

# Packages of their own that are installed inside.
_OTHERS = ("passes", "corpus")

Arrow = tuple[str, str]


def _is_ours(module: str) -> bool:
    head, *rest = module.split(".")
    return head == _PLUGIN and (not rest or rest[0] not in _OTHERS)


def _arrows() -> Iterator[Arrow]:
    for path in modules(_PLUGIN):
        own = Import.module_name(path)
        yield from _arrows_of(own, imports_of(path))


def _arrows_of(own: str, imports: Iterable[Import]) -> Iterator[Arrow]:
    yield from ((own, entry.module) for entry in imports if _is_ours(entry.module) and entry.module != own)


def _package(module: str) -> str:
    first = module.split(".")[1:2]
    return first[0] if first and first[0] in _ORDER else _ROOT


def _upward(arrows: Iterable[Arrow]) -> list[Arrow]:
    """Return the imports of a package that stands above."""
    return [(a, b) for a, b in arrows if _ORDER.index(_package(a)) < _ORDER.index(_package(b))]


def _circle(arrows: Iterable[Arrow]) -> list[str]:
    """Return the modules of a circle, none where there is none."""
    graph: dict[str, set[str]] = {}
    for own, other in arrows:
        graph.setdefault(own, set()).add(other)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def _crowded(paths: Iterable[Path]) -> list[Path]:
    """Return the folders that hold more modules than one can keep in mind."""
    counts = Counter(path.parent for path in paths if path.name != "__init__.py")
    return [folder for folder, count in counts.items() if count > _MOST_MODULES]


def test_every_package_has_its_floor() -> None:
    folders = {path.parent for path in modules(_PLUGIN)} - {ROOT / _PLUGIN}
    assert {folder.relative_to(ROOT / _PLUGIN).as_posix() for folder in folders} | {_ROOT} == set(_ORDER)


def test_a_package_knows_none_above_it() -> None:
    assert _upward(_arrows()) == []


@pytest.mark.parametrize(
    "source",
    [
        "from ..capture.capture import Capture\n",
        "from ..capture import capture\n",
        "from .. import capture\n",
        "if TYPE_CHECKING:\n    from ..capture.capture import Capture\n",
        "def late():\n    from ..capture.capture import Capture\n",
        "from .. import Program\n",
        "from ..options import resolve\n",
        "import pytest_reinplace.command.main\n",
    ],
)
def test_the_rule_about_floors_fires(source: str) -> None:
    imports = read_imports(source, f"{_PLUGIN}.judge")
    assert len(_upward(_arrows_of(f"{_PLUGIN}.judge.fate", imports))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from . import graph_facts\n",
        "from ..base import _torch\n",
        "from ..passes import Outcome\n",
        "from torch.fx import Node\n",
    ],
)
def test_the_rule_about_floors_lets_what_is_below_be_imported(source: str) -> None:
    imports = read_imports(source, f"{_PLUGIN}.judge")
    assert _upward(_arrows_of(f"{_PLUGIN}.judge.fate", imports)) == []


def test_no_module_is_reached_from_itself() -> None:
    assert _circle(_arrows()) == []


def test_the_rule_about_circles_fires() -> None:
    there = read_imports("from .fate import Fates\n", f"{_PLUGIN}.judge")
    back = read_imports("if TYPE_CHECKING:\n    from .after import After\n", f"{_PLUGIN}.judge")
    arrows = [*_arrows_of(f"{_PLUGIN}.judge.after", there), *_arrows_of(f"{_PLUGIN}.judge.fate", back)]
    assert set(_circle(arrows)) == {f"{_PLUGIN}.judge.after", f"{_PLUGIN}.judge.fate"}
    assert _circle(arrows[:1]) == []


def test_a_package_is_small() -> None:
    assert _crowded(modules(_PLUGIN)) == []


def test_the_rule_about_size_fires() -> None:
    folder = ROOT / _PLUGIN / "judge"
    paths = [folder / "__init__.py", *(folder / f"m{i}.py" for i in range(_MOST_MODULES))]
    assert _crowded(paths) == []
    assert _crowded([*paths, folder / "one_more.py"]) == [folder]
