"""YAML whose every value knows its line, read without running or expanding anything.

Only plain data comes out: mappings with string keys, lists, strings, numbers, booleans and null.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.nearest import nearest
from ..base.wording import path_of

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 256 * 1024
"""Largest entry file that is read."""
MAX_VALUES = 20_000
"""Most values in one file, counting an anchored value at each alias that repeats it."""
MAX_DEPTH = 32
"""Deepest nesting."""


class EntryError(Exception):
    """A corpus entry is wrong. The message says where, what was expected, what came, and what to do."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        self.path = path
        self.line = line
        where = path_of(path) if line is None else f"{path_of(path)}:{line}"
        super().__init__(f"{where}: {problem}")


class Located:
    """One value of a YAML file.

    Args:
        path: the file, for messages.
        key: dotted name of the value (``"presets.cpu.args"``), empty for the whole document.
        line: its line, from 1.
        value: ``dict[str, Located]``, ``list[Located]`` or a scalar.
        span: where its text begins and ends in the file, in characters; that of an anchor where it is an
            alias.
    """

    __slots__ = ("key", "line", "path", "span", "value")

    def __init__(self, path: Path, key: str, line: int, value: Any, span: tuple[int, int] = (0, 0)) -> None:
        self.path: Path = path
        self.key: str = key
        self.line: int = line
        self.value: Any = value
        self.span: tuple[int, int] = span

    def error(self, problem: str) -> EntryError:
        """Return an error at this value's line."""
        return EntryError(self.path, self.line, problem)

    def plain(self) -> Any:
        """Return the value without its lines."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def expected(self, what: str) -> EntryError:
        """Return the error for a value of the wrong type."""
        name = f"key {self.key!r}" if self.key else "the document"
        return self.error(f"expected {name} to be {what}, got {_shown(self.plain())}")

    def mapping(self, what: str = "a mapping") -> dict[str, Located]:
        """Return the entries of a mapping."""
        if not isinstance(self.value, dict):
            raise self.expected(what)
        return self.value

    def record(self, required: Iterable[str], optional: Iterable[str]) -> dict[str, Located]:
        """Return the entries of a mapping that has all ``required`` keys and else only ``optional`` ones."""
        required, entries = list(required), self.mapping()
        valid = sorted([*required, *optional])
        for key, item in entries.items():
            if key not in valid:
                raise item.error(f"unknown key {item.key!r}{nearest(key, valid)}")
        for key in required:
            if key not in entries:
                raise self.error(
                    f"missing key {key!r}; {'required are' if required[1:] else 'required is'} "
                    f"{', '.join(map(repr, required))}"
                )
        return entries

    def string(self, what: str = "a string") -> str:
        """Return a non-empty string."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.expected(what)
        return self.value

    def boolean(self) -> bool:
        """Return a boolean."""
        if not isinstance(self.value, bool):
            raise self.expected("true or false")
        return self.value

    def number(self) -> float:
        """Return a finite number that is not negative."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise self.expected("a finite number, 0 or larger (YAML reads 1e-5 as text: write 1.0e-5)")
        return float(value)

    def strings(self) -> tuple[str, ...]:
        """Return a list of strings."""
        if not isinstance(self.value, list):
            raise self.expected("a list of strings")
        return tuple(item.string() for item in self.value)

    def choice(self, valid: Iterable[str]) -> str:
        """Return one of the ``valid`` strings."""
        valid = list(valid)
        value = self.string(f"one of {', '.join(valid)}")
        if value not in valid:
            raise self.error(
                f"expected key {self.key!r} to be one of {', '.join(valid)}, got "
                f"{value!r}{nearest(value, valid)}"
            )
        return value


def read(path: Path) -> Located:
    """Read one YAML document; raises :class:`EntryError` with the line of whatever is wrong."""
    return parse(path, _text(path))


def parse(path: Path, text: str) -> Located:
    """Return one YAML document of a file that was read already; raises as :func:`read` does."""
    import yaml

    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise EntryError(path, 1, "the file is empty; a corpus entry is a mapping")
        return _Reader(path, loader).value(node, "", 0)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise EntryError(path, mark.line + 1 if mark else None, f"not valid YAML: {problem}") from error
    except RecursionError as error:
        raise EntryError(path, None, f"expected at most {MAX_DEPTH} levels of nesting") from error
    finally:
        loader.dispose()


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise EntryError(path, None, f"expected at most {MAX_BYTES} bytes, got {size}; split the entry")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise EntryError(path, None, f"expected UTF-8 text: {error}") from error
    except OSError as error:
        raise EntryError(path, None, f"cannot be read: {error.strerror}") from error


class _Reader:
    """Turns YAML nodes into located values, counting them."""

    def __init__(self, path: Path, loader: yaml.SafeLoader) -> None:
        self._path = path
        self._loader = loader
        self._count = 0

    def value(self, node: yaml.Node, key: str, depth: int) -> Located:
        import yaml

        line = node.start_mark.line + 1
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            limit = f"{MAX_VALUES} values" if depth <= MAX_DEPTH else f"{MAX_DEPTH} levels"
            raise EntryError(self._path, line, f"expected at most {limit}, aliases counted where they repeat")
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind not in {"map", "seq", "str", "int", "float", "bool", "null"}:
            raise EntryError(
                self._path, line, f"expected plain data, got the YAML tag {node.tag!r}; put text in quotes"
            )
        span = node.start_mark.index, node.end_mark.index
        if isinstance(node, yaml.MappingNode):
            return Located(self._path, key, line, self._entries(node, key, depth), span)
        if isinstance(node, yaml.SequenceNode):
            items = [self.value(item, f"{key}[{i}]", depth + 1) for i, item in enumerate(node.value)]
            return Located(self._path, key, line, items, span)
        return Located(self._path, key, line, self._scalar(node), span)

    def _entries(self, node: yaml.MappingNode, prefix: str, depth: int) -> dict[str, Located]:
        entries: dict[str, Located] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            name = key_node.value
            if not isinstance(name, str) or key_node.tag != "tag:yaml.org,2002:str":
                raise EntryError(self._path, line, f"expected keys to be plain strings, got {_shown(name)}")
            if name in entries:
                first = entries[name].line
                raise EntryError(self._path, line, f"duplicate key {name!r}; it is already on line {first}")
            item = self.value(value_node, f"{prefix}.{name}" if prefix else name, depth + 1)
            entries[name] = Located(self._path, item.key, line, item.value, item.span)
        return entries

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            return self._loader.construct_object(node)
        except ValueError as error:
            line = node.start_mark.line + 1
            raise EntryError(self._path, line, f"not a number: {node.value!r} ({error})") from error


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
