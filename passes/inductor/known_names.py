"""Names in ``require`` that no operator bears: nothing would be required, and nobody would hear of it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from ..report import Outcome
from ..required import UnknownName
from ._torch import registered_operators
from .schedule.hook import warn

Operators = Mapping[str, set[str]]  # their arguments by their names


def check(names: Sequence[str], candidates: Sequence[Outcome]) -> None:
    """Refuse names of operators that do not exist.

    A name without ``::`` may be that of a Triton kernel, or of its argument, in a graph to come: where it
    nearly is a name of this graph, and that of nothing known, a warning says so. With two dots it can be that
    of no kernel. A name of a library that is not loaded is only warned of: options are shared by programs. A
    graph without a candidate says nothing: what the next one calls may be loaded later.

    Args:
        names: what is required.
        candidates: those of the graph that is being compiled.

    Raises:
        UnknownName: the library is there, and no operator of it is called so.
    """
    left = [name for name in names if not any(one.bears(name) for one in candidates)]
    if not candidates or not left:
        return
    known = registered_operators()
    wrong = {name: _meant(name, known, candidates) for name in left if not _is_borne(name, known)}
    libraries = {op.partition("::")[0] for op in known}
    if loaded := {name: meant for name, meant in wrong.items() if _is_wrong(name, libraries)}:
        raise UnknownName(loaded, inspect.currentframe())
    for name, meant in wrong.items():
        if "::" in name:
            warn(f"require names {name!r}: no operator of that library is loaded{meant}")
        elif (
            meant
            and _is_plain(name)
            and name not in {argument for arguments in known.values() for argument in arguments}
        ):
            warn(f"require names {name!r}: no candidate of this graph is called so{meant}")


def _is_borne(name: str, known: Operators) -> bool:
    """Return whether an operator, or a label without the index of an element, is called so."""
    pattern = name.partition("[")[0]
    return any(fnmatchcase(text, pattern) for text in _texts(known))


def _is_wrong(name: str, libraries: set[str]) -> bool:
    """Return whether a name can be that of nothing to come."""
    if "::" not in name:
        return name.count(".") > 1 and _is_plain(name)
    return any(fnmatchcase(library, name.partition("::")[0]) for library in libraries)


def _is_plain(name: str) -> bool:
    """Return whether a name is no pattern."""
    return not set("*?") & set(name)


def _texts(known: Operators) -> Iterator[str]:
    for op, arguments in known.items():
        yield op
        yield from (f"{op}.{argument}" for argument in sorted(arguments))


def _meant(name: str, known: Operators, candidates: Sequence[Outcome]) -> str:
    """Return the question whether another name was meant: one of the graph, or else of the same library."""
    library, colons, _ = name.partition("::")
    here = {text: text for one in candidates for text in (one.label, one.op)}
    if not colons:  # an argument alone, or a label without its library
        here |= {one.label.rpartition("::")[2]: one.label for one in candidates}
        here |= {one.arg: one.arg for one in candidates}
    there = [text for text in _texts(known) if text.startswith(f"{library}::")]
    near = difflib.get_close_matches(name, here, 1) or difflib.get_close_matches(name, there, 1)
    return f": did you mean {here.get(near[0], near[0])!r}?" if near else ""
