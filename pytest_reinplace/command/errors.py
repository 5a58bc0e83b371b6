"""What ends a command with the exit code for wrong usage."""

from __future__ import annotations


class CommandError(Exception):
    """The command cannot do what was asked. The message says what was expected and what came."""
