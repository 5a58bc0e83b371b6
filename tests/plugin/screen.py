"""Programs run on a terminal of their own, and what that terminal shows in the end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

_COLOUR = re.compile(r"\x1b\[[0-9;]*m|\x1b\][^\x07\x1b]*(\x07|\x1b\\)")


def printed(*args: str, cwd: Path, typed: str = "", columns: int = 100, **env: str) -> str:
    """Return all that this interpreter prints on a terminal where something is typed, without colours."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    outside = ("PYTEST_", "REINPLACE_", "CI", "BUILD_NUMBER", "COLUMNS", "LINES")
    os.write(controller, typed.encode())
    own = {k: v for k, v in os.environ.items() if not k.startswith(outside)}
    own |= {"TERM": "xterm", "PYTHONSAFEPATH": "1"} | env
    with subprocess.Popen(
        [sys.executable, *args], cwd=cwd, env=own, stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL
    ) as process:
        os.close(terminal)
        read = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
            while chunk := os.read(controller, 65536):
                read += chunk
        os.close(controller)
        process.wait(60)
    return _COLOUR.sub("", read.decode())


def shown(text: str) -> list[str]:
    """Return the lines that a terminal shows after a text: backspaces and returns move back."""
    lines = [[""]]
    column = 0
    for character in text:
        if character == "\n":
            lines.append([])
        elif character == "\r":
            column = 0
        elif character == "\b":
            column = max(column - 1, 0)
        else:
            line = lines[-1]
            line.extend(" " * (column + 1 - len(line)))
            line[column] = character
            column += 1
    return ["".join(line).rstrip() for line in lines]
