"""What a pass changed: the lines of a graph before and after it, as a diff."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from ...picture.listing import Line

Sign = Literal["", "-", "+"]
# A name of a node; what has a dot beside it is a part of an operator's.
_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*(?![\w.])")
_AROUND = 3
# Not folded: a fold takes a line as well.
_SHORT = 2 * _AROUND + 2


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A line of the diff.

    Args:
        sign: ``"-"`` where the pass removed it, ``"+"`` where the pass made it, empty where it is in both.
        line: as it is after the pass; before it, where it was removed.
        node: the node of the functional graph that it stands for, empty where there is none.
    """

    sign: Sign
    line: Line
    node: str


def compared(before: Sequence[Line], after: Sequence[Line]) -> list[Row]:
    """Return the diff of two listings. A node that is the same under another name is no difference.

    Where lines are left out of one of them, nothing is told removed or made: it may be among those.
    """
    names = _renamed(before, after)
    nodes = {line.node for line in before}
    old, new = [line.text for line in before], [_named(line.text, names) for line in after]
    if any(not line.node for line in (*before, *after)):
        return [Row("", line, names.get(line.node, line.node)) for line in after]
    found = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            found += [Row("-", line, line.node) for line in before[i:j]]
        for line in after[k:m]:
            node = names.get(line.node, line.node)
            found.append(Row("" if tag == "equal" else "+", line, node if node in nodes else ""))
    return found


def _renamed(before: Sequence[Line], after: Sequence[Line]) -> dict[str, str]:
    """Return the names of nodes of the functional graph by those that they have after the pass."""
    here, there = {line.node for line in before}, {line.node for line in after}
    gone: dict[str, list[str]] = {}
    for line in before:
        if line.node not in there:
            gone.setdefault(line.text.removeprefix(line.node), []).append(line.node)
    found: dict[str, str] = {}
    for line in after:
        if line.node and line.node not in here:
            same = gone.get(_named(line.text.removeprefix(line.node), found))
            if same:
                found[line.node] = same.pop(0)
    return found


def _named(text: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda found: names.get(found[0], found[0]), text) if names else text


def places(rows: Sequence[Row], nodes: Collection[str]) -> dict[int, str]:
    """Return the rows, by position, at which the clones of some nodes are seen after the pass.

    That is the line that stands for the node; where the pass wrote others instead, the first of those.
    """
    found: dict[int, str] = {}
    left = set(nodes)
    for i, row in enumerate(rows):
        if row.sign != "-" and row.node in left:
            left.remove(row.node)
            found[i] = row.node
    for i, row in enumerate(rows):
        if row.node in left:
            left.remove(row.node)
            made = next((j for j in range(i, len(rows)) if rows[j].sign != "-"), i)
            found.setdefault(made if rows[made].sign == "+" else i, row.node)
    return found


def folded(rows: Sequence[Row], telling: Collection[int], most: int) -> Iterator[tuple[int, Row]]:
    """Yield at most ``most`` rows with their positions, and a row for each gap, with position -1.

    Of what is the same only that around a change, or around what is telling, is kept.

    Args:
        rows: the diff.
        telling: positions of rows that are kept.
        most: rows that are kept.
    """
    told = [i for i, row in enumerate(rows) if row.sign or i in telling]
    near = {j for i in told for j in range(i - _AROUND, i + _AROUND + 1)}
    kept, last = 0, -1
    for i in [*sorted(j for j in near if 0 <= j < len(rows)), len(rows)]:
        if kept >= most:
            break
        begin = last + 1 if i - last - 1 < _SHORT else i
        if begin > last + 1:
            yield -1, Row("", Line("", f"… {begin - last - 1} lines are the same"), "")
        for j in range(begin, min(i + 1, len(rows))):
            yield j, rows[j]
            kept += 1
        last = i
    if last < len(rows) - 1:
        yield -1, Row("", Line("", f"… {len(rows) - 1 - last} lines left out"), "")
