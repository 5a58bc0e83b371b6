"""The clone list of a corpus entry, in its YAML file."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..entry.located import EntryError, Located, parse
from .brackets import Element, newline, rewritten
from .found import ListError

_LABEL = re.compile(r"[A-Za-z_][\w.:]*(\[[0-9]+\])?", re.ASCII)


def place(path: Path, data: bytes, device: str, pass_name: str) -> str:
    """Return the key of the list that is in force, as JSON: the preset's own, else that of all.

    Raises:
        ListError: there is none.
    """
    document = _document(path, data.decode("utf-8"))
    own = ("presets", device, "clones", pass_name)
    for keys in (own, own[2:]):
        if _under(document, keys) is not None:
            return json.dumps(keys)
    raise ListError(f"expected a list under clones.{pass_name}, got none")


def replaced(path: Path, data: bytes, place: str, came: Sequence[str]) -> bytes:
    """Return a file with other labels in the list of that key; nothing else is changed.

    Raises:
        ListError: there is no such list, it is one that another key shares, or the file would mean something
            else.
    """
    text, keys = data.decode("utf-8"), tuple(json.loads(place))
    document = _document(path, text)
    found = _under(document, keys)
    if found is None:
        raise ListError("there is no such list any more: the file has changed")
    _refuse_shared(document, keys)
    begin, end = found.span
    if text[begin] == "[":
        elements = [Element(item.string(), *item.span) for item in found.value]
        new = rewritten(text, begin, end, elements, came, _in_flow, (4, 2))
    elif text[begin] == "-":
        new = _block(text, found, keys[-1], came)
    else:
        raise ListError("expected a plain list, got one with an anchor or a tag")
    expected = document.plain()
    inner = expected
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = list(came)
    try:
        same = parse(path, new).plain() == expected
    except EntryError:
        same = False
    if not same:
        raise ListError("the list is written so that rewriting it would change more than the list")
    return new.encode("utf-8")


def _document(path: Path, text: str) -> Located:
    try:
        return parse(path, text)
    except EntryError as error:
        raise ListError(f"the file has changed: {error}") from None


def _under(document: Located, keys: Sequence[str]) -> Located | None:
    found: Located | None = document
    for key in keys:
        if found is None or not isinstance(found.value, dict):
            return None
        found = found.value.get(key)
    return found if found is not None and isinstance(found.value, list) else None


def _refuse_shared(document: Located, keys: Sequence[str]) -> None:
    """Refuse a list that an alias means as well, by itself or with what is around it."""
    counts = collections.Counter(
        item.span for item in _nested(document) if isinstance(item.value, dict | list)
    )
    on_the_way = document
    for key in keys:
        on_the_way = on_the_way.value[key]
        if counts[on_the_way.span] > 1:
            raise ListError("expected a list of its own, got one that an alias shares with another key")


def _nested(item: Located) -> Iterator[Located]:
    yield item
    if isinstance(item.value, dict | list):
        for one in item.value.values() if isinstance(item.value, dict) else item.value:
            yield from _nested(one)


def _in_flow(label: str) -> str:
    """Return a label as flow style takes it: there a bracket ends a plain text."""
    return label if _LABEL.fullmatch(label) and "[" not in label else json.dumps(label)


def _block(text: str, found: Located, key: str, came: Sequence[str]) -> str:
    """Return a file with other labels in a list of which each has a line of its own, with its comments."""
    end_of_line = newline(text)
    begin, end = text.rfind("\n", 0, found.span[0]) + 1, _line_end(text, found.value[-1].span[1])
    indent = text[begin : found.span[0]]
    if not came:
        return _emptied(text, begin, end, key)
    stock: dict[str, collections.deque[str]] = collections.defaultdict(collections.deque)
    at = begin
    for item in found.value:
        first, last = item.span
        line = text.rfind("\n", 0, first) + 1
        behind = _line_end(text, last)
        if not re.fullmatch(r"\s*-\s+", text[line:first]) or "\n" in text[first:last]:
            raise ListError("expected each label on a line of its own behind '- '")
        stock[item.string()].append(text[at:behind].rstrip("\r\n"))
        at = behind
    lines = [stock[label].popleft() if stock.get(label) else f"{indent}- {_plain(label)}" for label in came]
    last_end = text[begin:end][len(text[begin:end].rstrip("\r\n")) :]
    return text[:begin] + end_of_line.join(lines) + last_end + text[end:]


def _emptied(text: str, begin: int, end: int, key: str) -> str:
    """Return a file with ``[]`` behind the key of a list whose lines go."""
    quoted = rf"[\"']?{re.escape(key)}[\"']?\s*:"
    keys = list(re.finditer(quoted, text[:begin]))
    if not keys:
        raise ListError(f"expected the key {key!r} above its list")
    at = keys[-1].end()
    return f"{text[:at]} []{text[at:begin]}{text[end:]}"


def _plain(label: str) -> str:
    return label if _LABEL.fullmatch(label) else json.dumps(label)


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1
