"""``--reinplace-verify``: what it says of a test, of a run, and where its programs are kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..base import whole_file, wording
from ..base.visible import visible
from . import item_capture

if TYPE_CHECKING:
    from ..capture.captured import CapturedGraph
    from ..capture.verified import Verified
    from ..record.record import Record

_FOLDER = "reinplace"
_TOLD = pytest.StashKey[set[str]]()
_SECTION = "reinplace reproduction"
_MOST = 30
_WIDTH = 2000


def note(item: pytest.Item, error: BaseException) -> None:
    """Put what is wrong with a test's graphs beside what the test itself fails with."""
    if isinstance(error, pytest.skip.Exception | pytest.xfail.Exception):
        return  # it does not fail: its teardown will
    capture = item_capture.running(item)
    found = _untold(item, capture.checked_graphs) if capture is not None else []
    if capture is not None and found:
        origin = item_capture.origin(capture)
        item.add_report_section("call", "reinplace verify", text(found, _kept(item, found), origin))
        _show(item, found)
        _tell(item, found)


def fail_where_different(item: pytest.Item) -> None:
    """Fail a test that compiled a wrong graph, once for each of them.

    Only one that asks to be checked, or a run that does: a report fails nothing.
    """
    capture = item_capture.running(item)
    asked = item_capture.settings_of(item.config).verify or item_capture.is_asked(item)
    if capture is not None and asked:
        judge(item, capture.checked_graphs, item_capture.origin(capture))


def refuse_xfail(item: pytest.Item, report: pytest.TestReport) -> None:
    """Let a test fail that compiled a wrong graph, although it is marked ``xfail``."""
    if item.stash.get(_TOLD, None):
        report.outcome = "failed"
        del report.wasxfail


def judge(item: pytest.Item, graphs: Sequence[CapturedGraph], origin: str) -> None:
    """Fail a test one of whose graphs breaks the contract and was not told yet."""
    found = _untold(item, graphs)
    if not found:
        return
    _show(item, found)
    _tell(item, found)
    pytest.fail(text(found, _kept(item, found), origin), pytrace=False)


def _untold(item: pytest.Item, graphs: Sequence[CapturedGraph]) -> list[Verified]:
    told = item.stash.get(_TOLD, set())
    found = {g.verified.graph: g.verified for g in graphs if g.verified is not None}
    return [one for one in found.values() if one.is_different and one.graph not in told]


def _tell(item: pytest.Item, found: Iterable[Verified]) -> None:
    item.stash.setdefault(_TOLD, set()).update(one.graph for one in found)


def _show(item: pytest.Item, found: Iterable[Verified]) -> None:
    for one in found:
        if one.program:
            item.add_report_section("call", _SECTION, one.program)


def text(found: Sequence[Verified], kept: Sequence[Path | None], origin: str) -> str:
    """Return the failure text, the verdict first.

    Args:
        found: the graphs that are wrong.
        kept: for each the file of its program.
        origin: which pass and backend, for the reader.
    """
    lines = []
    for one, path in zip(found, kept, strict=True):
        lines.append(f"graph {one.graph} breaks the contract: {one.text} ({origin})")
        if one.node or one.source:
            lines.append(f"  first node that differs: {one.node or 'not known'} at {one.source or 'no line'}")
        if one.pass_name:
            lines.append(f"  wrong since pass {one.pass_name}")
        elif one.stage:
            lines.append(f"  wrong since Inductor's stage {one.stage}")
        size = wording.plural(one.nodes, "operator")
        if path is not None:
            lines.append(f"  run: python {path} ({size}; its text is below)")
        elif one.program:
            lines.append(f"  a program of {size} that shows it is below")
        else:
            lines.append(f"  no program that shows it: {one.no_program}")
    return "\n".join(lines)


def _kept(item: pytest.Item, found: Sequence[Verified]) -> list[Path | None]:
    """Write the programs into pytest's cache; ``None`` for one that cannot be written."""
    cache = getattr(item.config, "cache", None)
    return [_write(item, cache, one) if one.program and cache is not None else None for one in found]


def _write(item: pytest.Item, cache: pytest.Cache, one: Verified) -> Path | None:
    name = re.sub(r"[^\w.-]+", "-", f"{item.nodeid}-{one.graph}").strip("-")[-150:]
    try:
        path = cache.mkdir(_FOLDER) / f"{name}.py"
        whole_file.write(path, one.program)
    except OSError:
        return None
    here = item.config.invocation_params.dir
    return path.relative_to(here) if path.is_relative_to(here) else path


def summarize(terminal: pytest.TerminalReporter, records: Sequence[Record]) -> None:
    """Print how many graphs were checked, and each one that was not with its reason."""
    terminal.section("reinplace verify")
    found = [
        (record.nodeid, graph["graph"], graph["verified"])
        for record in records
        for graph in record.graphs
        if graph.get("verified")
    ]
    counts = Counter(one["status"] for _, _, one in found)
    terminal.line(
        f"{wording.plural(counts['same'] + counts['different'], 'graph')} checked, "
        f"{counts['different']} wrong, {counts['not-checked']} not checked"
    )
    odd = [entry for entry in found if entry[2]["status"] != "same"]
    for nodeid, graph, one in odd[:_MOST]:
        wrong = one["status"] == "different"
        line = f"{nodeid} {graph} {'is wrong' if wrong else 'not checked'}: {one['text']}"
        terminal.line(f"  {visible(line, _WIDTH)}", red=wrong, yellow=not wrong)
    if len(odd) > _MOST:
        terminal.line(f"  and {len(odd) - _MOST} more")
