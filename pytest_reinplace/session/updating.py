"""``--reinplace-update-clones``: expected clone lists rewritten to what came, by one process of a run.

``--reinplace-update`` writes them too, and the texts of graphs.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..base.visible import visible
from ..expected import python_list, rewrite, yaml_list
from ..expected.found import Found, ListError, digest
from ..expected.rewrite import Change, Left, OfTest
from ..record.record import EXPECTED
from .item_capture import COMPARED, settings_of

if TYPE_CHECKING:
    from types import FrameType

    from ..entry.verdict import EntryVerdict

_CAME = pytest.StashKey[dict[tuple[str, str], tuple[str, ...]]]()
# Takes the file of a graph and the text that came; returns the text that is expected, ``None`` where there is
# none, and whether the file will be as it came.
Came = Callable[[Path, str], tuple[str | None, bool]]
_OURS = __name__.partition(".")[0]
_WIDTH = 2000


def comparing(item: pytest.Item) -> Callable[[list[str], list[str]], bool] | None:
    """Return what ``assert_clones`` tells its comparisons to; ``None`` where nothing is rewritten."""
    return functools.partial(_compared, item) if settings_of(item.config).rewrites else None


def _compared(item: pytest.Item, expected: list[str], came: list[str]) -> bool:
    """Note one comparison in a test; return whether the list will be as it came, so that the test goes on."""
    frame = _caller()
    found = _in_python(item, frame, tuple(expected), tuple(came))
    return _noted(item, found)


def graphs(item: pytest.Item) -> Came:
    """Return what ``assert_graph`` tells its texts to."""
    return functools.partial(_graph_came, item)


def _graph_came(item: pytest.Item, path: Path, text: str) -> tuple[str | None, bool]:
    data = path.read_bytes() if path.exists() else None
    expected = None if data is None else data.decode("utf-8").replace("\r\n", "\n")
    if not settings_of(item.config).rewrites_graphs:
        return expected, False
    problem = "its test is expected to fail" if item.get_closest_marker("xfail") is not None else ""
    if not path.resolve().is_relative_to(item.config.rootpath.resolve()):
        problem = f"expected a file of the project in {item.config.rootpath}"
    held = () if expected is None else (expected,)
    found = Found(str(path.resolve()), "", held, (text,), digest(data or b""), problem)
    return expected, _noted(item, found)


def accepts(item: pytest.Item, verdict: EntryVerdict) -> bool:
    """Note what came in an entry; return whether its list will be as it came, and nothing else is wrong."""
    if not settings_of(item.config).rewrites or not verdict.differs_in_clones_only:
        return False
    entry, expected = verdict.entry, verdict.expected or ()
    try:
        file, data = _readable(entry.path, item.config.rootpath)
        _refuse_changed(verdict)
        place = yaml_list.place(file, data, verdict.preset.device, verdict.pass_name)
        # Tried at once: a list that cannot be rewritten fails its own test.
        yaml_list.replaced(file, data, place, verdict.clones)
        found = Found(str(file), place, expected, tuple(verdict.clones), digest(data))
    except (ListError, OSError, UnicodeDecodeError) as error:
        found = Found(
            str(entry.path), f"clones.{verdict.pass_name}", expected, tuple(verdict.clones), "", str(error)
        )
    return _noted(item, found)


def _refuse_changed(verdict: EntryVerdict) -> None:
    from ..entry.entry import EntryError, load

    try:
        if load(verdict.entry.path) == verdict.entry:
            return
    except EntryError:
        pass
    raise ListError("the file has changed since it was read")


def _caller() -> FrameType:
    """Return the frame that compares: the innermost one outside the plugin."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _OURS:
        frame = frame.f_back
    return frame


def _in_python(
    item: pytest.Item, frame: FrameType, expected: tuple[str, ...], came: tuple[str, ...]
) -> Found:
    name = frame.f_code.co_filename
    try:
        if item.get_closest_marker("xfail") is not None:
            raise ListError("its test is expected to fail")
        file, data = _readable(Path(name), item.config.rootpath)
        span = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        place = python_list.place(data, span, expected)
        python_list.replaced(data, {place: came})
        return Found(str(file), place, expected, came, digest(data))
    except (ListError, OSError, UnicodeDecodeError) as error:
        return Found(name, f"{frame.f_lineno}:", expected, came, "", str(error))


def _readable(path: Path, root: Path) -> tuple[Path, bytes]:
    """Return a file and what it holds.

    Raises:
        ListError: it is not one of the project.
        OSError: it cannot be read.
    """
    file = path.resolve()
    is_ours = file.is_relative_to(root.resolve()) and "site-packages" not in file.parts
    if not is_ours or not file.is_file():
        raise ListError(f"expected a file of the project in {root}")
    return file, file.read_bytes()


def _noted(item: pytest.Item, found: Found) -> bool:
    known = item.config.stash.setdefault(_CAME, {})
    first = known.setdefault(found.key, found.came)
    # In a loop one list is compared several times: all that came is told, each once.
    item.stash.setdefault(COMPARED, {}).setdefault((*found.key, *sorted(found.came)), found)
    agrees = sorted(first) == sorted(found.came)
    return not found.problem and agrees and not settings_of(item.config).update_diff


class Updates:
    """What all tests of a run say of expected lists, and what is made of it.

    Args:
        config: the configuration of the session.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath.resolve()
        self._shows = settings_of(config).update_diff
        self._found: dict[str, dict[str, tuple[Found, ...]]] = {}
        self._failed: set[str] = set()
        self._changes: list[Change] = []
        self._left: list[Left] = []

    def take(self, report: pytest.TestReport) -> None:
        """Note what a phase of a test found; the last run of a repeated test counts."""
        if report.when == "setup":
            self._found[report.nodeid] = {}
            self._failed.discard(report.nodeid)
        if report.failed:
            self._failed.add(report.nodeid)
        text = getattr(report, EXPECTED, None)
        if text is not None:
            found = tuple(map(Found.from_dict, json.loads(text)))
            self._found.setdefault(report.nodeid, {})[str(report.when)] = found

    def _tests(self) -> Iterator[OfTest]:
        for nodeid, phases in sorted(self._found.items()):
            found = tuple(one for phase in phases.values() for one in phase)
            # Where nothing is written the difference itself fails the test.
            yield OfTest(nodeid, found, nodeid in self._failed and not self._shows)

    def finish(self, session: pytest.Session) -> None:
        """Write the files; where one is not written, the run fails for the tests that have passed for it."""
        self._changes, self._left = rewrite.changes(self._tests(), self._root)
        if self._shows:
            return
        may_write = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        for change in list(self._changes):
            try:
                if not may_write:
                    raise ListError("the run was interrupted")
                rewrite.write(change)
            except (ListError, OSError) as error:
                self._changes.remove(change)
                where = change.file.relative_to(self._root).as_posix()
                self._left.append(Left(where, str(error), change.tests))
        if session.exitstatus == pytest.ExitCode.OK and self._unwritten():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _unwritten(self) -> bool:
        passed = self._found.keys() - self._failed
        return any(passed.intersection(left.tests) for left in self._left if not left.is_foreseen)

    def summarize(self, terminal: pytest.TerminalReporter) -> None:
        """Print a diff of every file, which lists were rewritten, and which are left and why."""
        if not self._changes and not self._left:
            return
        terminal.section(f"reinplace {self._what}")
        for change in self._changes:
            for line in rewrite.diff(change, self._root):
                terminal.line(visible(line, _WIDTH), red=line.startswith("-"), green=line.startswith("+"))
        for change in self._changes:
            terminal.line(
                visible(rewrite.told(change, self._root, self._verb), _WIDTH), green=not self._shows
            )
        for left in self._left:
            line = f"{left.where}: left as it is: {left.why} (of {_named(left.tests)})"
            terminal.line(visible(line, _WIDTH), red=True)

    @property
    def _what(self) -> str:
        are_graphs = {rewrite.is_graph(change.file) for change in self._changes}
        are_graphs.update(rewrite.is_graph(left.where) for left in self._left)
        told = [name for name, kind in (("expected clones", False), ("graphs", True)) if kind in are_graphs]
        return " and ".join(told)

    @property
    def _verb(self) -> str:
        return "would be updated" if self._shows else "updated"


def _named(tests: Iterable[str]) -> str:
    found = list(tests)
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if found[3:] else "")
