"""``--reinplace-verify``, ``--reinplace-verify-rules``: what they say of a test and of a run.

And where programs are kept that show what is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..base import whole_file, wording
from ..base.visible import visible
from ..record import ledgers, plain
from . import item_capture

if TYPE_CHECKING:
    from ..capture.captured import CapturedGraph
    from ..capture.verified import Verified
    from ..record.record import Record
    from .settings import Settings

_FOLDER = "reinplace"
_SAID = pytest.StashKey[set[str]]()
_SECTION = "reinplace reproduction"
_MOST, _APPLICATIONS = 30, 10
_WIDTH = 2000


def note(item: pytest.Item, error: BaseException) -> None:
    """Put what is wrong with a test's graphs beside what the test itself fails with."""
    if isinstance(error, pytest.skip.Exception | pytest.xfail.Exception):
        return  # it does not fail: its teardown will
    capture = item_capture.running(item)
    if capture is None:
        return
    told = _told(item, capture.checked_graphs, item_capture.origin(capture))
    if capture.following is not None and (crash := capture.following.crash):
        told = "\n".join(filter(None, [told, f"raised by {crash}"]))
    if told:
        item.add_report_section("call", "reinplace verify", told)


def fail_where_different(item: pytest.Item) -> None:
    """Fail a test that compiled a wrong graph, once for each of them.

    Only one that asks to be checked, or a run that does: a report fails nothing.
    """
    capture = item_capture.running(item)
    settings = item_capture.settings_of(item.config)
    asked = settings.verify or settings.verify_rules or item_capture.is_asked(item)
    if capture is not None and asked:
        judge(item, capture.checked_graphs, item_capture.origin(capture))


def refuse_xfail(item: pytest.Item, report: pytest.TestReport) -> None:
    """Let a test fail that compiled a wrong graph, although it is marked ``xfail``."""
    if item.stash.get(_SAID, None):
        report.outcome = "failed"
        del report.wasxfail


def judge(item: pytest.Item, graphs: Sequence[CapturedGraph], origin: str) -> None:
    """Fail a test one of whose graphs, or of whose rules, breaks the contract and was not told yet."""
    if told := _told(item, graphs, origin):
        pytest.fail(told, pytrace=False)


def _told(item: pytest.Item, graphs: Sequence[CapturedGraph], origin: str) -> str:
    """Return what is wrong and was not told yet, and take it for told."""
    texts = []
    if found := _untold(item, graphs):
        _show(item, found)
        _tell(item, (one.graph for one in found))
        texts.append(text(found, _kept(item, found), origin))
    known = item.stash.get(_SAID, set())
    wrong = {
        f"rules of {g.id}": [a for a in g.applications or () if plain.applied().is_wrong(a)] for g in graphs
    }
    wrong = {key: those for key, those in wrong.items() if those and key not in known}
    if wrong:
        _tell(item, wrong)
        texts.append(rules_text([one for those in wrong.values() for one in those], origin))
    return "\n".join(texts)


def rules_text(wrong: Sequence[Mapping[str, Any]], origin: str) -> str:
    """Return the failure text for applications that break the contract, in their order.

    Args:
        wrong: the applications, as plain data.
        origin: which pass and backend, for the reader.
    """
    lines = []
    for one in wrong[:_APPLICATIONS]:
        what = "rule" if one["rule"] else "pass"
        lines.append(f"graph {one['graph']}: a {what} breaks the contract ({origin})")
        lines.append(f"  {plain.applied().told(one)}")
        if node := one["finding"]["node"]:
            source = one["finding"]["source"] or "no line"
            lines.append(f"  first node that differs: {node} at {source}")
    if len(wrong) > _APPLICATIONS:
        lines.append(f"and {wording.plural(len(wrong) - _APPLICATIONS, 'application')} more")
    return "\n".join(lines)


def _untold(item: pytest.Item, graphs: Sequence[CapturedGraph]) -> list[Verified]:
    told = item.stash.get(_SAID, set())
    found = {g.verified.graph: g.verified for g in graphs if g.verified is not None}
    return [one for one in found.values() if one.is_different and one.graph not in told]


def _tell(item: pytest.Item, names: Iterable[str]) -> None:
    item.stash.setdefault(_SAID, set()).update(names)


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


def summarize(terminal: pytest.TerminalReporter, records: Sequence[Record], settings: Settings) -> None:
    """Print how much was checked, and each graph and rule that was not with its reason."""
    terminal.section("reinplace verify")
    graphs = [(record.nodeid, graph) for record in records for graph in record.graphs]
    if settings.verify:
        _summarize_graphs(terminal, graphs)
    if settings.verify_rules:
        _summarize_rules(terminal, graphs)


_Graphs = Sequence[tuple[str, Mapping[str, Any]]]


def _summarize_graphs(terminal: pytest.TerminalReporter, graphs: _Graphs) -> None:
    found = [(nodeid, graph["graph"], graph["verified"]) for nodeid, graph in graphs if graph.get("verified")]
    counts = Counter(one["status"] for _, _, one in found)
    terminal.line(
        f"{wording.plural(counts['same'] + counts['different'], 'graph')} checked, "
        f"{counts['different']} wrong, {counts['not-checked']} not checked"
    )
    odd = [entry for entry in found if entry[2]["status"] != "same"]
    lines = []
    for nodeid, graph, one in odd:
        wrong = one["status"] == "different"
        lines.append((f"{nodeid} {graph} {'is wrong' if wrong else 'not checked'}: {one['text']}", wrong))
    _print(terminal, lines)


def _summarize_rules(terminal: pytest.TerminalReporter, graphs: _Graphs) -> None:
    applied, lines, counts = plain.applied(), list[tuple[str, bool]](), Counter[str]()
    for nodeid, graph in graphs:
        found = graph.get("applications") or []
        counts.update((one["finding"] or {"status": ""})["status"] for one in found)
        lines += [
            (f"{nodeid} {one['graph']} {applied.told(one)}", True) for one in found if applied.is_wrong(one)
        ]
        if unchecked := ledgers.unchecked_in(graph):
            lines.append((f"{nodeid} {graph['graph']} {unchecked}", False))
    terminal.line(
        f"{wording.plural(counts['same'] + counts['different'], 'application')} of passes and rules checked, "
        f"{counts['different']} wrong, {counts['not-checked']} not checked"
    )
    _print(terminal, sorted(lines, key=lambda line: not line[1]))


def _print(terminal: pytest.TerminalReporter, lines: Sequence[tuple[str, bool]]) -> None:
    for line, wrong in lines[:_MOST]:
        terminal.line(f"  {visible(line, _WIDTH)}", red=wrong, yellow=not wrong)
    if len(lines) > _MOST:
        terminal.line(f"  and {len(lines) - _MOST} more")
