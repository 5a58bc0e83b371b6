"""What a corpus entry's builder returns: a callable to compile and the arguments to call it with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


class BuilderError(Exception):
    """An entry cannot be run: its builder is missing, is called wrongly or returns no such program."""


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A callable and example arguments.

    Every tensor that a call may write must be reachable from ``fn`` (a module, a bound method or a
    callable object holds its state), ``args`` or ``kwargs``, and not be closed over: the judge copies the
    three together, sharing of storage included, runs the copy eagerly and the original compiled.

    Args:
        fn: what is compiled.
        args: positional arguments.
        kwargs: keyword arguments.
        setup: called once before each of the two runs, e.g. to seed random numbers.
        teardown: called once when the program is done with, whatever became of it, e.g. to leave a process
            group that the builder has joined.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    setup: Callable[[], object] | None = None
    teardown: Callable[[], object] | None = None
