"""The lines of a generated program, one by one, as they run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any


class Lines:
    """A context that tells of each line of some code that is about to run in this thread.

    Python's trace function is ours for the block; whoever had one before has it back after.

    Args:
        is_meant: returns whether code is to be followed.
        begin: is told the arguments of the first frame, before its first line.
        step: is told the number of each line.
    """

    def __init__(
        self,
        is_meant: Callable[[CodeType], bool],
        step: Callable[[int], None],
        begin: Callable[[list[Any]], None] = lambda given: None,
    ) -> None:
        self._is_meant = is_meant
        self._step = step
        self._begin = begin
        self._has_begun = False
        self._before: Any = None

    def __enter__(self) -> Lines:
        self._before = sys.gettrace()
        sys.settrace(self._frame)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.settrace(self._before)

    def _frame(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not self._is_meant(frame.f_code):
            return None
        if not self._has_begun:
            self._has_begun = True
            self._begin(frame.f_locals.get("args", []))
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._step(frame.f_lineno)
        return self._line
