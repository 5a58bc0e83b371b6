"""What a long test is doing, at ``-v`` on a terminal behind its name: ``compile 3.1 s · measure 12/20``."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

import pytest

# Seconds: most tests are done before anything is shown, and what is shown changes as a clock does.
_PATIENCE, _BEAT = 1.0, 0.1

_SESSION = pytest.StashKey["Progress"]()


class Progress:
    """Shows how long a test has been compiling and how much of a measurement is done; takes it back after.

    Where something is shown, it is a plugin of its own. It is written to the terminal itself, behind what
    pytest wrote, and taken back by backspaces before the block ends: what pytest prints next stands where it
    would have stood. A thread writes, and only inside the blocks.

    Args:
        stream: the terminal, out of the reach of pytest's capture; ``None``: nothing is ever shown.
        room: returns how many columns are free in its current line.
        patience: seconds before anything is shown.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        room: Callable[[], int] = lambda: 0,
        patience: float = _PATIENCE,
    ) -> None:
        self._stream = stream
        self._room = room
        self._patience = patience
        self._depth = self._shown = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.reset()

    def reset(self) -> None:
        """Begin a new test."""
        self._compiled = 0.0
        self._since: float | None = None
        self._measured = ""

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Show for the block how many seconds the test has compiled; a block inside another adds nothing."""
        if self._stream is None or self._since is not None:
            yield
            return
        self._since = time.monotonic()
        try:
            with self._ticking():
                yield
        finally:
            self._compiled += time.monotonic() - self._since
            self._since = None

    @contextlib.contextmanager
    def measuring(self, total: int) -> Iterator[Callable[[int], None]]:
        """Show for the block which of ``total`` runs is measured; yields what is called with its number."""

        def at(number: int) -> None:
            self._measured = f"measure {number}/{total}"

        try:
            with self._ticking():
                yield at
        finally:
            self._measured = ""

    def text(self) -> str:
        """Return what is shown now."""
        seconds = self._compiled + (time.monotonic() - self._since if self._since is not None else 0)
        return " · ".join(filter(None, (f"compile {seconds:.1f} s" if seconds else "", self._measured)))

    def pytest_enter_pdb(self) -> None:
        """Show nothing until the block ends, and leave the terminal to the debugger."""
        self._join()
        self._shown = 0

    def pytest_unconfigure(self) -> None:
        """Give the terminal back; nothing is shown any more."""
        self._join()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    @contextlib.contextmanager
    def _ticking(self) -> Iterator[None]:
        if self._stream is None:
            yield
            return
        self._depth += 1
        if self._depth == 1:
            self._stop.clear()
            self._thread = threading.Thread(target=self._tick, name="reinplace-progress", daemon=True)
            self._thread.start()
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._join()
                with contextlib.suppress(OSError):
                    self._write("")

    def _join(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _tick(self) -> None:
        wait = self._patience
        while not self._stop.wait(wait):
            with contextlib.suppress(OSError):  # the terminal is gone: the tests are not
                text = self.text()
                self._write(text if len(text) <= self._room() else "")
            wait = _BEAT

    def _write(self, text: str) -> None:
        """Write a text in the place of the last one."""
        if self._stream is None or not (text or self._shown):
            return
        rest = max(self._shown - len(text), 0)
        self._stream.write("\b" * self._shown + text + " " * rest + "\b" * rest)
        self._stream.flush()
        self._shown = len(text)


def begin(config: pytest.Config) -> None:
    """Begin the progress of a session: silent but at ``-v``, on a terminal that nothing else writes to.

    To be called while pytest captures nothing. A worker of pytest-xdist has no terminal, with ``-s`` the
    tests have it themselves, and with live logs the log does.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    shown = (
        not hasattr(config, "workerinput")
        and reporter is not None
        and config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) >= 1
        and config.getoption("capture") == "fd"
        and not config.getini("log_cli")
        and config.getoption("log_cli_level", default=None) is None
        and sys.stdout.isatty()
        and os.environ.get("TERM") != "dumb"
    )
    if not shown:
        return
    terminal = config.get_terminal_writer()
    # A file of our own: during a test pytest's goes where its capture wants it.
    stream = open(os.dup(sys.stdout.fileno()), "w", encoding=sys.stdout.encoding, errors="replace")  # noqa: SIM115

    def room() -> int:
        # Not pytest's idea of the width, which is 80 where the terminal has less than 40.
        return os.get_terminal_size(stream.fileno()).columns - terminal.width_of_current_line - 1

    config.stash[_SESSION] = Progress(stream, room)
    config.pluginmanager.register(config.stash[_SESSION], "reinplace-progress")


def of(config: pytest.Config) -> Progress:
    """Return the progress of the running session."""
    return config.stash.get(_SESSION, None) or Progress()
