"""The report as text, for a terminal: what is to be looked at, a table of the clones, the sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..base.fit import TIMES, aligned, begun, columns, shortened, wrapped
from ..base.visible import visible
from ..base.wording import bytes_of, plural
from ..compare.figure import shown
from ..record.counts import counts_of
from . import held, lowered, pass_by_pass
from .clone import Clone, clones_of
from .finding import Finding, findings_of
from .groups import Group, groups_of

_MOST = 10
# Names from a report are cut before they are measured: they may have millions of letters.
_NAME, _SENTENCE = 2000, 2000
_INDENT, _GAP, _DETAIL = "  ", "  ", "      "
_HEADS = ("bytes", "count", "candidate", "reason", "where", "tests")
_CANDIDATE, _WHERE = 2, 4
_TEST_HEADS = ("test", "graphs", "candidates", "in place", "cloned", "bytes")
# What a column of names has at least, however narrow the terminal is.
_NARROWEST = 12


class Part(NamedTuple):
    """A piece of a line.

    Args:
        text: what it says, without control codes.
        styles: how, by the names that pytest's terminal knows: ``"bold"``, ``"red"``.
    """

    text: str
    styles: tuple[str, ...] = ()


Line = list[Part]


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """What a terminal shows of a report.

    Args:
        title: its heading; empty where one line says it all.
        lines: what stands below it.
    """

    title: str
    lines: tuple[Line, ...]


def section(report: Mapping[str, Any], width: int = 80, verbosity: int = 0) -> Section:
    """Return the section.

    Args:
        report: the document.
        width: columns of the terminal.
        verbosity: 0 for ten groups of clones, 1 for all of them and each test, 2 for each clone as well.
    """
    if not report["tests"]:
        return Section("", ([Part("reinplace: no test was captured: none ran torch.compile")],))
    groups = groups_of(clones_of(report))
    # What could not be verified is told by the verifier itself.
    remarks = [one for one in findings_of(report) if one.kind != "not-checked"]
    copied, calls = lowered.copied_in(report), held.calls_in(report)
    is_fine = not remarks and not groups and not copied
    style = ("green" if is_fine else "bold",)
    last = [[Part(line, style)] for line in _sums(report["total"], is_fine, width)]
    if is_fine and verbosity < 1 and not calls and not pass_by_pass.is_recorded(report):
        return Section("", tuple(last))
    blocks = [list(_remarks(remarks, width, verbosity)), list(_clones(report, groups, width, verbosity))]
    blocks += [list(_tests(report, width if verbosity < 2 else _NAME))] if verbosity > 0 else []
    blocks += [list(_copied(copied, width, verbosity)), list(_held(calls, width, verbosity))]
    blocks += [list(_passes(report, width, verbosity))]
    return Section("reinplace", (*(line for block in blocks if block for line in [*block, []]), *last))


def _sums(total: Mapping[str, int], is_fine: bool, width: int) -> list[str]:
    counts = [plural(total[f"{noun}s"], noun) for noun in ("test", "graph", "candidate")]
    if is_fine and total["candidates"]:
        counts.append("in place" if total["candidates"] == 1 else "all in place")
    elif total["candidates"]:
        counts.append(f"{total['reinplaced']} in place")
    if total["cloned"]:
        counts.append(f"{total['cloned']} cloned, {bytes_of(total['clone_bytes'])}")
    return wrapped(f"reinplace: {', '.join(counts)}", width, hang=_INDENT)


def _remarks(remarks: Sequence[Finding], width: int, verbosity: int) -> Iterator[Line]:
    """Yield a line for each, those that are wrong first; in whole sentences where more is asked for."""
    for remark in remarks if verbosity > 0 else remarks[:_MOST]:
        style = ("red", "bold") if remark.is_wrong else ("yellow",)
        test = visible(remark.test, _NAME)
        text = visible(remark.whole if verbosity > 0 else remark.text, _SENTENCE)
        if verbosity > 0:
            yield from ([Part(line, style)] for line in wrapped(f"{test}: {text}", width, hang=_DETAIL))
        else:
            yield [Part(begun(f"{shortened(test, width // 3)}: {text}", width), style)]
    if verbosity < 1 and len(remarks) > _MOST:
        yield [Part(f"and {len(remarks) - _MOST} more; -v shows them", ("yellow",))]


def _clones(report: Mapping[str, Any], groups: Sequence[Group], width: int, verbosity: int) -> Iterator[Line]:
    """Yield the table of groups, what there is to know below each, and the sum of those that are left out."""
    if not groups:
        return
    told = groups if verbosity > 0 else groups[:_MOST]
    left = groups[len(told) :]
    sums = [_sum(group.nbytes, len(group.clones)) for group in told]
    sums += [_sum(sum(group.nbytes for group in left), sum(len(group.clones) for group in left))]
    figures = list(aligned([_HEADS[:2], *sums], left=()))
    names = [_HEADS[2:], *(_names(group) for group in told)]
    used = len(_INDENT) + sum(map(len, figures[0])) + len(_GAP) * (len(_HEADS) - 1)
    head, *rows = aligned(list(_fitting(names, width - used)), left=range(3))
    yield [Part(_INDENT + _GAP.join([*figures[0], *head]).rstrip(), ("bold",))]
    for group, (size, count), (label, reason, where, tests) in zip(told, figures[1:], rows, strict=False):
        yield [
            Part(_INDENT + size, ("yellow", "bold")),
            Part(_GAP.join(["", count, label, reason, ""])),
            Part(where, ("cyan",)),
            Part(_GAP + tests),
        ]
        yield from _details(group, width)
        if verbosity > 1:
            for clone in group.clones:
                yield from _whole(report, clone, width)
    if left:
        size, count = figures[-1]
        yield [
            Part(_INDENT + size, ("yellow", "bold")),
            Part(f"{_GAP}{count}{_GAP}in {plural(len(left), 'more group')}; -v shows all"),
        ]


def _copied(copied: list[lowered.Copied], width: int, verbosity: int) -> Iterator[Line]:
    """Yield what lowering copies, by line and cause: all of it, or the ten largest."""
    if not copied:
        return
    yield [Part(lowered.title(copied), ("bold",))]
    for group in copied if verbosity > 0 else copied[:_MOST]:
        text = visible(group.line, _SENTENCE)
        for line in wrapped(text, width, _INDENT, _DETAIL, whole=verbosity > 1):
            yield [Part(line)]
    if verbosity < 1 and len(copied) > _MOST:
        yield [Part(f"{_INDENT}and {plural(len(copied) - _MOST, 'more group')}; -v shows all")]


def _held(calls: list[held.Call], width: int, verbosity: int) -> Iterator[Line]:
    """Yield a row for each measured call, and below it in words where its figures differ."""
    if not calls:
        return
    yield [Part(held.title(calls), ("bold",))]
    told = calls if verbosity > 0 else calls[:_MOST]
    head, *rows = aligned([held.SHORT, *(call.cells(exact=False) for call in told)], left=())
    yield [Part(_INDENT + _GAP.join([*head, "test"]), ("bold",))]
    room = width - len(_INDENT) - sum(len(cell) + len(_GAP) for cell in head)
    for call, row in zip(told, rows, strict=True):
        which = f" {call.which}" if call.which else ""
        test = visible(call.test, _NAME)
        if verbosity < 2:
            test = shortened(test, max(room, _NARROWEST) - len(which))
        yield [Part(_INDENT + _GAP.join([*row, test]) + which)]
        for line in wrapped(visible(call.note, _SENTENCE), width, _DETAIL, _DETAIL, whole=verbosity > 1):
            yield [Part(line, ("yellow",) if call.is_odd else ("light",))]
    if len(calls) > len(told):
        yield [Part(f"{_INDENT}and {plural(len(calls) - len(told), 'more call')}; -v shows all")]


def _passes(report: Mapping[str, Any], width: int, verbosity: int) -> Iterator[Line]:
    """Yield what passes and rules did, if that was recorded: each application, or the sums of passes."""
    if not pass_by_pass.is_recorded(report):
        return
    applied = pass_by_pass.applied_in(report)
    yield [Part(pass_by_pass.title(applied), ("bold",))]
    if len(applied) > pass_by_pass.MOST_SINGLY:
        sums = pass_by_pass.by_pass(applied)
        head, *rows = aligned([pass_by_pass.HEADS, *(one.cells for one in sums)], left=(5,))
        yield [Part(begun(_INDENT + _GAP.join(head), width), ("bold",))]
        for passed, row in zip(sums, rows, strict=True):
            line = visible(_INDENT + _GAP.join(row), _SENTENCE).rstrip()
            yield [Part(begun(line, width), ("red", "bold") if passed.is_wrong else ())]
        if verbosity < 1:
            return
    tests = {one.test for one in applied}
    for one in applied:
        text = (f"{one.test} " if len(tests) > 1 else "") + one.line
        style = ("red", "bold") if one.is_wrong else ()
        for line in wrapped(visible(text, _SENTENCE), width, _INDENT, _DETAIL, whole=verbosity > 1):
            yield [Part(line, style)]


def _sum(nbytes: int, count: int) -> tuple[str, str]:
    return shown("clone_bytes", nbytes), f"{count}{TIMES}"


def _names(group: Group) -> tuple[str, ...]:
    more = len(group.labels) - 1
    label = visible(group.labels[0], _NAME) + (f" +{more}" if more else "")
    return label, group.reason, visible(group.where, _NAME), str(len(group.tests))


def _fitting(rows: Sequence[Sequence[str]], room: int) -> Iterator[list[str]]:
    """Yield rows of names whose candidates and lines are shortened where there is no room for all."""
    label, reason, where, tests = (max(map(columns, cells)) for cells in zip(*rows, strict=True))
    room -= reason + tests
    most = max(room - min(where, room // 2), _NARROWEST)
    for row in rows:
        cells = [shortened(row[0], most), row[1], shortened(row[2], max(room - min(label, most), _NARROWEST))]
        yield [*cells, row[3]]


def _details(group: Group, width: int) -> Iterator[Line]:
    texts = [group.sentence + (f"; held back by {group.blockers}" if group.blockers else "")]
    texts += [f"hint: {group.hint}"] if group.hint else []
    for text in texts:
        for line in wrapped(visible(text, _SENTENCE), width, indent=_DETAIL, hang=_DETAIL):
            yield [Part(line, ("light",))]


def _whole(report: Mapping[str, Any], clone: Clone, width: int) -> Iterator[Line]:
    """Yield one clone with all that is known of it alone; its names are not shortened."""
    data, graph = clone.data, report["tests"][clone.test]["graphs"][clone.graph]["graph"]
    inner = f" of {data['graph']}" if data["graph"] else ""
    text = f"{bytes_of(clone.nbytes)}: {data['label']}, node {data['node']}{inner}"
    text += f" at {clone.source}" if clone.source else ""
    text += f", in {clone.test} {graph}"
    text += f"; held back by {clone.blockers}" if clone.blockers else ""
    for line in wrapped(visible(text, _SENTENCE), width, f"{_DETAIL}- ", f"{_DETAIL}  ", whole=True):
        yield [Part(line)]


def _tests(report: Mapping[str, Any], width: int) -> Iterator[Line]:
    """Yield the table of tests, in the order of their ids."""
    rows = []
    for test, data in sorted(report["tests"].items()):
        *counts, size = counts_of(data["graphs"]).values()
        rows.append([visible(test, _NAME), *map(str, counts), shown("clone_bytes", size)])
    figures = [list(_TEST_HEADS[1:]), *(row[1:] for row in rows)]
    used = len(_INDENT) + sum(len(_GAP) + max(map(len, column)) for column in zip(*figures, strict=True))
    names = [_TEST_HEADS[0], *(shortened(row[0], max(width - used, _NARROWEST)) for row in rows)]
    table = [[name, *cells] for name, cells in zip(names, figures, strict=True)]
    for i, row in enumerate(aligned(table)):
        yield [Part(_INDENT + _GAP.join(row), () if i else ("bold",))]
