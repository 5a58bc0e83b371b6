"""The list literal that ``assert_clones`` was compared with, in the source of a test."""

from __future__ import annotations

import ast
import functools
import io
from collections.abc import Iterator, Sequence

from .brackets import Element, rewritten
from .found import ListError

Span = tuple[int | None, int | None, int | None, int | None]
"""First and last line, from 1, first and last column, from 0 in bytes, as ``co_positions`` has them."""


def place(data: bytes, span: Span, expected: Sequence[str]) -> str:
    """Return where the literal begins, as ``"line:column"``.

    Args:
        data: the file.
        span: of the comparison that runs.
        expected: the labels that were compared with.

    Raises:
        ListError: it is no literal list of strings, or the file is not what runs.
    """
    found = [node for node in ast.walk(_tree(data)) if isinstance(node, ast.Compare) and _fits(node, span)]
    if len(found) != 1:
        raise ListError(
            "expected one comparison on this line of the file, got " + (str(len(found)) or "none")
        )
    (comparison,) = found
    if len(comparison.ops) != 1 or not isinstance(comparison.ops[0], ast.Eq):
        raise ListError(f"expected assert_clones == [...] by itself, got {ast.unparse(comparison)}")
    sides = comparison.left, comparison.comparators[0]
    literals = [side for side in sides if isinstance(side, ast.List)]
    if len(literals) != 1:
        shown = " or ".join(ast.unparse(side) for side in sides if not _is_ours(side)) or "something else"
        raise ListError(f"expected a literal list of strings, got {shown[:80]}")
    labels = _labels(literals[0])
    if labels != list(expected):
        raise ListError("the list in the file is not the one that was compared: the file has changed")
    return f"{literals[0].lineno}:{literals[0].col_offset}"


def replaced(data: bytes, places: dict[str, Sequence[str]]) -> bytes:
    """Return a file with other labels in the literals at ``places``; nothing else is changed.

    Raises:
        ListError: there is no such literal, or the file would mean something else.
    """
    tree = _tree(data)
    text = data.decode("utf-8")
    lists = {
        f"{node.lineno}:{node.col_offset}": node for node in ast.walk(tree) if isinstance(node, ast.List)
    }
    if missing := places.keys() - lists.keys():
        raise ListError(f"there is no list at {min(missing)}: the file has changed")
    starts = list(_starts(text))
    ordered = sorted(places, key=lambda name: (lists[name].lineno, lists[name].col_offset), reverse=True)
    for name in ordered:
        text = _with(text, starts, lists[name], places[name])
    new = text.encode("utf-8")
    for name, labels in places.items():
        lists[name].elts = [ast.Constant(label) for label in labels]
    try:
        same = ast.dump(ast.parse(new)) == ast.dump(tree)
    except SyntaxError:
        same = False
    finally:
        _tree.cache_clear()  # the tree was changed
    if not same:
        raise ListError("the list stands where rewriting it would change more than the list")
    return new


@functools.lru_cache(maxsize=1)
def _tree(data: bytes) -> ast.Module:
    try:
        data.decode("utf-8")
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ListError(f"expected Python in UTF-8: {error}") from None


def _fits(node: ast.Compare, span: Span) -> bool:
    first, last, begin, end = span
    if begin is None or end is None:  # Python runs without columns
        return first is not None and node.lineno <= first <= (node.end_lineno or 0)
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == (first, last, begin, end)


def _is_ours(side: ast.expr) -> bool:
    name = side.func if isinstance(side, ast.Call) else side
    return isinstance(name, ast.Name) and name.id == "assert_clones"


def _labels(literal: ast.List) -> list[str]:
    values = [item.value if isinstance(item, ast.Constant) else None for item in literal.elts]
    if not all(isinstance(value, str) for value in values):
        raise ListError(f"expected a literal list of strings, got {ast.unparse(literal)[:80]}")
    return [str(value) for value in values]


def _with(text: str, starts: list[int], literal: ast.List, came: Sequence[str]) -> str:
    def offset(line: int, column: int) -> int:
        start = starts[line - 1]
        whole = text[start : start + column]  # at least as many characters as there are
        return start + len(whole.encode("utf-8")[:column].decode("utf-8"))

    def span(node: ast.expr) -> tuple[int, int]:
        return offset(node.lineno, node.col_offset), offset(node.end_lineno or 0, node.end_col_offset or 0)

    elements = [
        Element(label, *span(node)) for label, node in zip(_labels(literal), literal.elts, strict=True)
    ]
    quote = "'" if elements and text[elements[0].begin] == "'" else '"'

    def quoted(label: str) -> str:
        is_plain = label.isprintable() and quote not in label and "\\" not in label
        return f"{quote}{label}{quote}" if is_plain else repr(label)

    return rewritten(text, *span(literal), elements, came, quoted, (4, 0))


def _starts(text: str) -> Iterator[int]:
    """Yield where each line begins; a mark of the byte order is no column of the first."""
    at = 1 if text.startswith("\ufeff") else 0
    for line in io.StringIO(text[at:], newline=""):
        yield at
        at += len(line)
