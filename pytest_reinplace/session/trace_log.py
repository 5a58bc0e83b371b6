"""Torch's trace log: a copy of all that a compile does, for who set ``TORCH_TRACE``; no test needs it.

It is on while it has a handler. Some releases of pytest give their own to every logger that does not
propagate: torch then prints each graph several times, for records that have no text.
"""

from __future__ import annotations

import logging
import re
import sys

_NAME = "torch.__trace"
_TRACE = re.compile(rf"DEBUG\s+{re.escape(_NAME)}:\S+\s*$")


def silence() -> None:
    """Take the handlers of pytest off the log; those of torch and of others stay."""
    if "torch" not in sys.modules:
        return
    log = logging.getLogger(_NAME)
    for handler in [*log.handlers]:
        if type(handler).__module__.startswith("_pytest."):
            log.removeHandler(handler)


def removed(sections: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return captured output without these records: the test that imports torch has some."""
    kept = []
    for name, text in sections:
        lines = text.splitlines(keepends=True)
        left = "".join(line for line in lines if not _TRACE.match(line))
        if left or not text:
            kept.append((name, left))
    return kept
