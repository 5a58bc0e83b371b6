"""A session that is told to end, as one that takes too long is by ``timeout`` or a job runner."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest


def like_ctrl_c(config: pytest.Config) -> None:
    """Let SIGTERM end a session as Ctrl-C does: what is known is written. A second one ends the process.

    A handler of somebody else's stays.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    signal.signal(signal.SIGTERM, _interrupt)
    config.add_cleanup(_restore)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _restore()
    raise KeyboardInterrupt("terminated")


def _restore() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
