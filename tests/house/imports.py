"""The imports of a source file, read off its syntax tree."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path

from .checkout import PACKAGES, ROOT


@dataclasses.dataclass(frozen=True, slots=True)
class Import:
    """One imported module.

    Args:
        module: its full name, as installed (``"pytest_reinplace.passes.report"``).
        line: the line of the import.
        early: whether it runs when the file is imported, not inside a function nor for type checkers only.
    """

    module: str
    line: int
    early: bool

    @staticmethod
    def module_name(path: Path) -> str:
        """Return the installed name of a file of one of our folders."""
        folder, *rest = path.relative_to(ROOT).with_suffix("").parts
        return ".".join([PACKAGES[folder], *rest]).removesuffix(".__init__")


def imports_of(path: Path) -> Iterator[Import]:
    """Yield every import of a file; ``from package import module`` counts as one of ``package.module``."""
    package = Import.module_name(path)
    if path.name != "__init__.py":
        package = package.rpartition(".")[0]
    yield from read_imports(path.read_text(), package)


def read_imports(source: str, package: str) -> Iterator[Import]:
    """Yield the imports of a module's source text; relative ones start from ``package``."""
    yield from _walk(ast.parse(source), package, early=True)


def _walk(node: ast.AST, package: str, early: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, node.lineno, early) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (Import(name, node.lineno, early) for name in _targets(node, package))
    elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        for child in node.body:
            yield from _walk(child, package, early=False)
        for child in node.orelse:
            yield from _walk(child, package, early)
    else:
        inside = early and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from _walk(child, package, inside)


def _targets(node: ast.ImportFrom, package: str) -> set[str]:
    """Return the modules a ``from`` import names."""
    base = package.split(".")[: len(package.split(".")) - max(node.level - 1, 0)] if node.level else []
    module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
    return {_own_module(module, alias.name) for alias in node.names}


def _own_module(module: str, name: str) -> str:
    """Return ``module.name`` if that is a module of ours, else ``module``."""
    for folder, package in sorted(PACKAGES.items(), key=lambda item: -len(item[1])):
        if module == package or module.startswith(package + "."):
            place = ROOT / folder / Path(*module.removeprefix(package).strip(".").split("."))
            if (place / f"{name}.py").is_file() or (place / name / "__init__.py").is_file():
                return f"{module}.{name}"
            break
    return f"{module}.{name}" if f"{module}.{name}" in PACKAGES.values() else module
