"""A house rule: what is known of operators is known in one place, a row for each in the table of traits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pytest_reinplace.passes.ops.traits import _ROWS, ROWS, overloads

from .checkout import ROOT, modules

_DISPLAY = (
    ast.Set | ast.Dict | ast.List | ast.Tuple | ast.SetComp | ast.DictComp | ast.ListComp | ast.GeneratorExp
)
_NAME = re.compile(r"(aten|prims|prim|_c10d_functional|inductor|higher_order)::?")
_OVERLOAD = re.compile(r"(torch\.ops|aten|prims)\.\w+(\.\w+)+")

# Where operators are described, and what reads them by itself on purpose: checks do not believe the pass.
_FOLDERS = ("ops", "verify", "fuzz", "oracle")


def _is_free(path: Path) -> bool:
    inside = path.relative_to(ROOT / "passes")
    return inside.parts[0] in _FOLDERS


def _names(node: ast.AST) -> int:
    """Count the operators that an expression names; a name that is put together stands for several."""
    if isinstance(node, ast.Attribute):
        return int(_OVERLOAD.fullmatch(ast.unparse(node)) is not None)
    if isinstance(node, ast.Constant):
        return int(isinstance(node.value, str) and _NAME.match(node.value) is not None)
    if isinstance(node, ast.JoinedStr):
        return 2 * int(any(map(_names, node.values)))
    return sum(map(_names, ast.iter_child_nodes(node)))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _statements(statement.body)
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement


def _tables(source: str) -> list[int]:
    """Return the lines at which a module or one of its classes lists several operators."""
    found = []
    for statement in _statements(ast.parse(source).body):
        displays = (n for n in ast.walk(statement) if isinstance(n, _DISPLAY) and _names(n) > 1)
        found.extend([statement.lineno] * (next(displays, None) is not None))
    return found


@pytest.mark.parametrize("path", modules("passes"), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_has_no_table_of_operators(path: Path) -> None:
    assert _is_free(path) or _tables(path.read_text()) == []


@pytest.mark.parametrize(
    "program",
    [
        'X = frozenset({"aten::view", "aten::reshape"})',
        'X = ("aten:view", "prims::iota")',
        'X: dict[str, int] = {"aten::view": 0, "_c10d_functional::broadcast": 1}',
        "X = (torch.ops.aten.view.dtype, aten.view_as_complex.default)",
        "X = {id(aten.slice.Tensor): 1, **dict.fromkeys((aten.stride.int,), 2)}",
        'X = frozenset(f"aten::{name}" for name in ("mm", "bmm"))',
        'class A:\n    x = ["higher_order::cond", "higher_order::map"]',
    ],
)
def test_the_rule_fires(program: str) -> None:
    assert _tables(program) != []


@pytest.mark.parametrize(
    "program",
    [
        "aten = torch.ops.aten",
        'X = "aten::view"',
        'X = ("aten::view", "size", torch.ops.aten)',
        'def f(name):\n    return name in ("aten::view", "aten::reshape")',
        'X = ("maximum", "minimum")',
    ],
)
def test_the_rule_leaves_other_names_alone(program: str) -> None:
    assert _tables(program) == []


def test_an_operator_has_one_row() -> None:
    names = [name for line, _ in _ROWS for name in line.split()]
    assert len(names) == len(set(names)) == len(ROWS)


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="others know other operators")
def test_every_row_is_of_an_operator() -> None:
    named = {f"{op._schema.name}.{op._overloadname}" for op in overloads(lambda _: True)}
    known = named | {name.rpartition(".")[0] for name in named}
    assert ROWS.keys() - known == set()
