"""Files whose lists or graphs are rewritten: what tests found, put together and written by one process."""

from __future__ import annotations

import dataclasses
import difflib
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..base import whole_file
from ..base.wording import plural
from . import python_list, yaml_list
from .found import GRAPH, Found, ListError, digest


@dataclasses.dataclass(frozen=True, slots=True)
class OfTest:
    """What one test found.

    Args:
        nodeid: its id.
        found: its comparisons.
        failed: whether it fails for something else, so that nothing that it found is believed.
    """

    nodeid: str
    found: tuple[Found, ...]
    failed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A file with other lists.

    Args:
        file: the file.
        old: what it holds.
        new: what it is to hold.
        lists: how many lists of it change.
        tests: the ids of the tests whose lists they are.
    """

    file: Path
    old: bytes
    new: bytes
    lists: int
    tests: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """A list that is left as it is.

    Args:
        where: its file and place.
        why: the reason.
        tests: the ids of the tests that compared with it.
        is_foreseen: whether it was known while the test ran, which fails where the list differs.
    """

    where: str
    why: str
    tests: tuple[str, ...]
    is_foreseen: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class _Group:
    """All comparisons with one list."""

    tests: tuple[tuple[OfTest, Found], ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(test.nodeid for test, _ in self.tests))

    @property
    def problem(self) -> str:
        """Why the list cannot be rewritten; empty where it can."""
        return next((one.problem for _, one in self.tests if one.problem), "")

    @property
    def new(self) -> Found | None:
        """The first comparison that says what to write; ``None`` where none does."""
        said = [one for test, one in self.tests if one.differs and not test.failed and not one.problem]
        return said[0] if said else None


def changes(tests: Iterable[OfTest], root: Path) -> tuple[list[Change], list[Left]]:
    """Return the files that change, and the lists that are left with the reason; nothing is written."""
    groups: dict[tuple[str, str], list[tuple[OfTest, Found]]] = defaultdict(list)
    for test in tests:
        for one in test.found:
            groups[one.key].append((test, one))
    files: dict[str, list[_Group]] = defaultdict(list)
    left = []
    for key, pairs in sorted(groups.items(), key=lambda found: _order(*found[0])):
        group = _Group(tuple(pairs))
        if why := _refused(group):
            left.append(Left(_where(*key, root), why, group.ids, group.problem != ""))
        elif group.new is not None:
            files[key[0]].append(group)
    made = []
    for name, of_file in sorted(files.items()):
        try:
            made.append(_change(Path(name), of_file))
        except (ListError, OSError, UnicodeDecodeError) as error:
            left += [
                Left(_where(name, group.tests[0][1].place, root), str(error), group.ids) for group in of_file
            ]
    return made, left


def _order(file: str, place: str) -> tuple[str, list[int], str]:
    """Return what sorts lists as they stand in their file."""
    parts = place.split(":")
    return file, [int(part) for part in parts if part.isdecimal()], place


def _refused(group: _Group) -> str:
    """Return why nothing is written into a list that differs; empty where something is or nothing has to."""
    if not any(one.differs for _, one in group.tests):
        return ""
    if group.problem:
        return group.problem
    came = {tuple(sorted(one.came)): one.came for _, one in group.tests}
    if len(came) > 1 and is_graph(group.tests[0][1].file):
        return "its tests disagree: give each of them a name of its own"
    if len(came) > 1:
        lists = " and ".join(str(list(labels)) for labels in list(came.values())[:3])
        return f"its tests disagree: {lists} came"
    return "" if group.new is not None else "its test fails for something else"


def _change(file: Path, groups: Sequence[_Group]) -> Change:
    old = held(file)
    said = [group.new for group in groups if group.new is not None]
    if any(one.digest != digest(old) for one in said):
        raise ListError("the file has changed since the test ran")
    if file.suffix == ".yaml":
        new = old
        for one in said:
            new = yaml_list.replaced(file, new, one.place, one.came)
    elif is_graph(file):
        new = said[0].came[0].encode("utf-8")
    else:
        new = python_list.replaced(old, {one.place: one.came for one in said})
    ids = dict.fromkeys(nodeid for group in groups for nodeid in group.ids)
    return Change(file, old, new, len(said), tuple(ids))


def is_graph(file: Path | str) -> bool:
    """Return whether a file holds the text of a graph."""
    return Path(file).suffix == GRAPH


def held(file: Path) -> bytes:
    """Return what a file holds; one of a graph need not be there yet.

    Raises:
        OSError: it cannot be read.
    """
    return b"" if is_graph(file) and not file.exists() else file.read_bytes()


def diff(change: Change, root: Path) -> Iterator[str]:
    """Yield the lines of a unified diff."""
    name = _shown(change.file, root)
    old, new = (text.decode("utf-8").splitlines() for text in (change.old, change.new))
    yield from difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")


def write(change: Change) -> None:
    """Write a file, whole and with its mode.

    Raises:
        ListError: it has changed meanwhile.
        OSError: it cannot be written; what was there before still is.
    """
    if held(change.file) != change.old:
        raise ListError("the file has changed since it was read")
    change.file.parent.mkdir(exist_ok=True)  # the folder of a module's graphs
    mode = stat.S_IMODE(change.file.stat().st_mode) if change.file.exists() else 0o644
    whole_file.write(change.file, change.new.decode("utf-8"), mode)


def told(change: Change, root: Path, verb: str) -> str:
    """Return what is said of a file: ``"test_a.py: 1 list updated, of test_a.py::test_x"``."""
    tests = ", ".join(change.tests[:3]) + (f" and {len(change.tests) - 3} more" if change.tests[3:] else "")
    what = "graph" if is_graph(change.file) else "list"
    return f"{_shown(change.file, root)}: {plural(change.lists, what)} {verb}, of {tests}"


def _where(file: str, place: str, root: Path) -> str:
    line = place.partition(":")[0]
    return f"{_shown(Path(file), root)}:{line}" if line.isdecimal() else _shown(Path(file), root)


def _shown(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
