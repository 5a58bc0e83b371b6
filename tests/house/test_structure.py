"""House rules that a reader of one file cannot see: sizes, and who may import whom."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .checkout import PACKAGES, ROOT, modules
from .imports import imports_of, read_imports

_MODULE_LINES = 400
_FUNCTION_LINES = 40
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_PRIVATE = re.compile(r"(torch|triton)(\.\w+)*?\._(?!_)\w+(\.\w+)*")
# A folder's seam modules: the only places that may name what torch and Triton do not publish.
_SEAMS = ("_torch.py", "_triton.py")
# What Inductor's scheduled operations and buffers are asked, without a name that says it is private.
_ASKED = {
    *("can_fuse", "compute_ancestors", "get_aliases", "get_mutations", "get_outputs", "is_extern"),
    *("is_foreach", "mutation_real_name", "name_to_buf", "read_writes", "snodes"),
}
# What other packages may import of passes/: its face, and the public modules beside it.
_FACES = {
    "pytest_reinplace.passes",
    *(f"pytest_reinplace.passes.{m}" for m in ("facts", "post_grad", "verify", "ledger", "strategies")),
}

# Those of benchmarks/ that import the plugin or the corpus.
_MEASURES_ENTRIES = {
    *("_torch", "capture_cost", "compile_seconds", "decode_memory", "ledger_seconds", "policies"),
}
# benchmarks/ is not installed; apart from that it keeps the same rules.
_FOLDERS = (*PACKAGES, "benchmarks")
_FILES = [path for folder in _FOLDERS for path in modules(folder)]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


every_file = pytest.mark.parametrize("path", _FILES, ids=_name)


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count a function's lines, its docstring left out: stating the contract costs nothing."""
    whole = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        whole -= (first.end_lineno or first.lineno) - first.lineno + 1
    return whole


def _private_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each private name of torch or Triton that is imported, reached into or passed as a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names if node.level == 0]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        elif isinstance(node, ast.Call):
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        else:
            continue
        # An operator's name may begin with an underscore and is public all the same.
        yield from (
            (node.lineno, n) for n in names if _PRIVATE.fullmatch(n) and not n.startswith("torch.ops.")
        )


def _asked(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield what scheduled operations are asked directly, and not by a function of the seam."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _ASKED and ast.unparse(node.value) != "_torch":
            yield node.lineno, node.attr


def _outside(files: list[Path], allowed: set[str], imported: str) -> list[str]:
    """List the imports of ``imported`` (a package) by ``files`` that are not of the ``allowed`` modules."""
    found = []
    for path in files:
        for entry in imports_of(path):
            if (entry.module + ".").startswith(imported + ".") and entry.module not in allowed:
                found.append(f"{_name(path)}:{entry.line} imports {entry.module}")
    return found


@every_file
def test_a_module_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= _MODULE_LINES


@every_file
def test_a_function_is_short(path: Path) -> None:
    functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, _FUNCTION)]
    long = [f"{f.name}, line {f.lineno}: {_lines(f)}" for f in functions if _lines(f) > _FUNCTION_LINES]
    assert long == []


@every_file
def test_private_names_are_in_the_seam_only(path: Path) -> None:
    found = [f"{_name(path)}:{line} {name}" for line, name in _private_names(ast.parse(path.read_text()))]
    assert found == [] or path.name in _SEAMS


def test_the_private_name_rule_fires() -> None:
    program = """from torch._ops import OpOverload
import torch._inductor.config
x = torch._C._jit
load("torch.utils._triton")
from torch.fx.experimental import _config
"""
    assert {line for line, _ in _private_names(ast.parse(program))} == {1, 2, 3, 4, 5}


def test_the_private_name_rule_leaves_public_names_alone() -> None:
    program = """from torch.fx import Node
x = torch.ops.aten._foreach_add
y = torch.__version__
load("torch.fx.experimental.symbolic_shapes")
z = node._erased
"""
    assert list(_private_names(ast.parse(program))) == []


@every_file
def test_scheduled_operations_are_asked_in_the_seam_only(path: Path) -> None:
    found = [f"{_name(path)}:{line} {name}" for line, name in _asked(ast.parse(path.read_text()))]
    assert found == [] or path.name in _SEAMS


def test_the_rule_of_scheduled_operations_fires() -> None:
    program = "a = node.is_extern()\nb = _torch.is_extern(node)\nc = node.read_writes.reads\n"
    assert list(_asked(ast.parse(program))) == [(1, "is_extern"), (3, "read_writes")]


def test_the_import_reader_tells_when_and_what() -> None:
    program = """import torch
from . import report
from .reason import Reason
if TYPE_CHECKING:
    import numpy
else:
    import yaml
def late():
    from triton.language import load
class Now:
    import json
"""
    found = {e.module: e.early for e in read_imports(program, "pytest_reinplace.passes")}
    assert found == {
        "torch": True,
        "pytest_reinplace.passes.report": True,
        "pytest_reinplace.passes.reason": True,
        "numpy": False,
        "yaml": True,
        "triton.language": False,
        "json": True,
    }


@pytest.mark.parametrize("other", ["pytest", "_pytest", "pytest_benchmark", "pytest_reinplace"])
def test_passes_know_nothing_of_pytest_the_plugin_or_the_corpus(other: str) -> None:
    found = _outside(modules("passes"), set(), other)
    assert [line for line in found if " imports pytest_reinplace.passes" not in line] == []


@pytest.mark.parametrize("folder", ["pytest_reinplace", "corpus"])
def test_other_packages_use_the_face_of_passes(folder: str) -> None:
    assert _outside(modules(folder), _FACES, "pytest_reinplace.passes") == []


def test_the_plugin_uses_the_face_of_the_corpus() -> None:
    allowed = {"pytest_reinplace.corpus"}
    assert _outside(modules("pytest_reinplace"), allowed, "pytest_reinplace.corpus") == []


def test_few_benchmarks_know_the_plugin() -> None:
    """Those that measure corpus entries, ledgers and captures; what times the pass does not."""
    ours, passes = "pytest_reinplace.", "pytest_reinplace.passes."
    told = {
        path.stem
        for path in modules("benchmarks")
        for entry in read_imports(path.read_text(), "benchmarks")
        if f"{entry.module}.".startswith(ours) and not f"{entry.module}.".startswith(passes)
    }
    assert told == _MEASURES_ENTRIES


@pytest.mark.parametrize("heavy", ["torch", "triton", "yaml", "numpy", "pytest_reinplace.passes"])
def test_the_plugin_imports_heavy_packages_inside_functions_only(heavy: str) -> None:
    early = [
        f"{_name(path)}:{entry.line}"
        for path in modules("pytest_reinplace")
        for entry in imports_of(path)
        if entry.early and (entry.module + ".").startswith(heavy + ".")
    ]
    assert early == []


def _section(folder: str) -> str:
    """Return what ARCHITECTURE.md says of a folder."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    return re.split(r"^##+ ", text.partition(f"### `{folder}/`")[2], maxsplit=1, flags=re.MULTILINE)[0]


def _rows(section: str) -> set[str]:
    """Return the paths that the rows of a section are about: their first cells."""
    cells = re.findall(r"^\| (`[^|]*) \|", section, flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w/.]+)`", cell)}


def _unsaid(folder: str, section: str) -> list[str]:
    """List the packages of a folder, and the modules at its top, that a section has no row for."""
    paths = [path.relative_to(ROOT / folder) for path in modules(folder)]
    packages = {f"{path.parent.as_posix()}/" for path in paths if path.parent.parts}
    top = {path.stem for path in paths if not path.parent.parts and path.stem != "__init__"}
    return sorted((packages | top) - _rows(section))


@pytest.mark.parametrize("folder", _FOLDERS)
def test_the_architecture_has_a_row_for_every_package_and_top_module(folder: str) -> None:
    assert _unsaid(folder, _section(folder)) == []


def test_the_rule_about_the_architecture_fires() -> None:
    assert "ops/" in _unsaid("passes", _section("passes").replace("`ops/`", "`other/ops`"))


@pytest.mark.parametrize("path", [p for p in _FILES if p.name == "__init__.py"], ids=_name)
def test_a_package_says_what_it_knows_and_must_not_know(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert text
    if path.relative_to(ROOT).parts[0] == "passes" and path.parent.name not in ("passes", "verify"):
        assert re.search(r"not know|Nothing .* may|apart from|Nothing imports", text), text
