"""Patterns of lines: which lines a graph has, in which order, and which it has not."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence

from .text import Line

_GAP = "..."
_NOT = "not:"
_CAPTURE = re.compile(r"\{([A-Za-z_]\w*)\}|\.\.\.")
# A brace that opens no capture. Those of a dict in a line have quotes, colons or nothing inside.
_NO_CAPTURE = re.compile(r"\{(?!\})[^{}'\":]*(?:\}|$)")
_SHOWN = 40


class PatternError(ValueError):
    """A pattern that says nothing, or not what it seems to."""


@dataclasses.dataclass(frozen=True, slots=True)
class Matched:
    """What became of a pattern.

    Args:
        names: what each capture stands for; ``None`` where the pattern does not match.
        text: why it does not, empty where it does.
    """

    names: Mapping[str, str] | None
    text: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """One line that has to come.

    Args:
        number: its number in the pattern, from 1.
        text: the line; empty for the end of the graph.
        is_next: whether it has to come right behind the one before it.
        absent: the lines that must not come between the two, with their numbers.
    """

    number: int
    text: str
    is_next: bool
    absent: tuple[tuple[int, str], ...]


def match(lines: Sequence[Line], pattern: str) -> Matched:
    """Hold lines against a pattern.

    Each line of the pattern is one of the graph, with its types or without any, and has to come right behind
    the one before it. ``...`` alone stands for any number of lines, in a line for any text; in front of the
    first and behind the last line anything may come. ``{name}`` stands for a name, the same one everywhere.
    ``not: LINE`` says that there is none between the lines around it.

    Raises:
        PatternError: the pattern has no lines, is nothing but ``...``, or has a capture that is no name.
    """
    search = _Search(lines, _steps(pattern))
    names = search.found()
    return Matched(names) if names is not None else Matched(None, search.told())


def _steps(pattern: str) -> list[_Step]:
    steps, absent = list[_Step](), list[tuple[int, str]]()
    is_next = False
    count = 0
    for number, raw in enumerate(pattern.strip("\n").splitlines(), 1):
        text = " ".join(raw.split())
        if not text:
            continue
        count = number
        if text == _GAP:
            is_next = False
        elif text.startswith(_NOT):
            absent.append((number, _line(number, text.removeprefix(_NOT).strip())))
            is_next = False
        else:
            steps.append(_Step(number, _line(number, text), is_next, tuple(absent)))
            absent, is_next = [], True
    if absent:
        steps.append(_Step(count + 1, "", False, tuple(absent)))
    if not steps:
        raise PatternError("expected lines of a graph as a pattern, got none: any graph would match")
    return steps


def _line(number: int, text: str) -> str:
    """Return a line of a pattern; one that cannot mean what it says is an error."""
    if not text:
        raise PatternError(f"line {number}: expected a line of a graph behind {_NOT!r}, got none")
    wrong = _NO_CAPTURE.search(_CAPTURE.sub("", text))
    if wrong is not None:
        raise PatternError(f"line {number}: expected {{name}}, the name a word, got {wrong[0]!r} in: {text}")
    return text


class _Search:
    """Looks for a way to place all lines, and remembers how far the best one came."""

    def __init__(self, lines: Sequence[Line], steps: Sequence[_Step]) -> None:
        self._lines, self._steps = lines, steps
        self._texts = [(" ".join(line.text.split()), " ".join(line.plain.split())) for line in lines]
        self._failed: set[tuple[int, int, frozenset[tuple[str, str]]]] = set()
        self._best: tuple[int, int, Mapping[str, str], str] = (-1, 0, {}, "")

    def found(self) -> Mapping[str, str] | None:
        """Return the captures of the first way that there is, ``None`` where there is none."""
        return self._placed(0, 0, {})

    def _placed(self, at: int, start: int, names: Mapping[str, str]) -> Mapping[str, str] | None:
        """Place the steps from ``at`` on in the lines from ``start`` on."""
        if at == len(self._steps):
            return names
        key = at, start, frozenset(names.items())
        if key in self._failed:
            return None
        step = self._steps[at]
        self._reached(at, start, names, "")
        for i in range(start, len(self._lines) + (not step.text)):
            more = self._matches(step.text, i, names)
            if more is not None:
                wrong = self._unwanted(step, start, i, names)
                if wrong:
                    self._reached(at, start, names, wrong)
                    break  # it stays between the two, however far the next line is
                ending = self._placed(at + 1, i + 1, more)
                if ending is not None:
                    return ending
            if step.is_next:
                break
        self._failed.add(key)
        return None

    def _reached(self, at: int, start: int, names: Mapping[str, str], why: str) -> None:
        if at > self._best[0] or (at == self._best[0] and why and not self._best[3]):
            self._best = at, start, names, why

    def _unwanted(self, step: _Step, start: int, end: int, names: Mapping[str, str]) -> str:
        for number, text in step.absent:
            for i in range(start, end):
                if self._matches(text, i, names) is not None:
                    told = f"line {number} of the pattern says that there is none: {_NOT} {text}"
                    return f"{told}\n  it is {self._lines[i]}"
        return ""

    def _matches(self, text: str, i: int, names: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the captures behind one line, ``None`` if it is another; no text is the graph's end."""
        if not text:
            return names if i == len(self._lines) else None
        known = set(names)
        expression = re.compile(_expression(text, names))
        for line in self._texts[i]:
            found = expression.fullmatch(line)
            if found is not None:
                return {**names, **{k: v for k, v in found.groupdict().items() if k not in known}}
        return None

    def told(self) -> str:
        """Return where the best way ended, and what came nearest there."""
        at, start, names, why = self._best
        step = self._steps[at]
        known = [f"{name} = {value}" for name, value in names.items()]
        told = [why] if why else list(self._missing(step, start, names))
        if known:
            told.append(f"  with {', '.join(known)}")
        first = max(0, start - 3)
        shown = [f"  {'>' if i == start else ' '} {self._lines[i]}" for i in self._window(first)]
        ahead = [f"  … {first} lines" for _ in range(first > 0)]
        return "\n".join([*told, "the graph, from where the match stopped (>):", *ahead, *shown])

    def _window(self, first: int) -> range:
        return range(first, min(len(self._lines), first + _SHOWN))

    def _missing(self, step: _Step, start: int, names: Mapping[str, str]) -> Iterator[str]:
        where = "right behind the line before it" if step.is_next else "behind the line before it"
        if step is self._steps[0]:
            where = "in the graph"
        yield f"line {step.number} of the pattern is not {where}: {step.text}"
        wanted = _CAPTURE.sub(lambda m: names.get(m[1] or "", "x"), step.text)
        ahead = range(start, min(len(self._lines), start + 1) if step.is_next else len(self._lines))
        ratios = [(_likeness(wanted, self._texts[i]), -i) for i in ahead]
        if not ratios:
            yield "  there is no line behind it"
        elif step.is_next:
            yield f"  there is {self._lines[start]}"
        else:
            yield f"  nearest is {self._lines[-max(ratios)[1]]}"


def _expression(text: str, names: Mapping[str, str]) -> str:
    """Return a line of a pattern as a regular expression."""
    parts, end, own = [], 0, set[str]()
    for found in _CAPTURE.finditer(text):
        parts.append(re.escape(text[end : found.start()]))
        name, end = found[1], found.end()
        if name is None:
            parts.append(".*")
        elif name == "_":
            parts.append(r"[A-Za-z_]\w*")
        elif name in names:
            parts.append(re.escape(names[name]))
        elif name in own:
            parts.append(f"(?P={name})")
        else:
            own.add(name)
            parts.append(rf"(?P<{name}>[A-Za-z_]\w*)")
    return "".join([*parts, re.escape(text[end:])])


def _likeness(wanted: str, texts: tuple[str, str]) -> float:
    return max(difflib.SequenceMatcher(None, wanted, text).ratio() for text in texts)
