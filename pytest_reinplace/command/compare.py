"""``pytest-reinplace compare``: two reports beside each other, held against limits."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ..compare import comparison_json, comparison_text
from ..compare.comparison import compare
from ..compare.limit import Limit
from ..record import stored
from ..reports.annotation import Workflow, compared

Form = Literal["text", "markdown", "json"]


def run(old: Path, new: Path, limits: Sequence[Limit], form: Form) -> int:
    """Print the comparison; returns the exit code, 1 where a limit is exceeded.

    In a workflow GitHub's annotations go to stderr, which GitHub reads as well: stdout may be a comment.

    Raises:
        stored.StoredError: a report cannot be used.
    """
    found = compare(stored.read(old), stored.read(new), limits)
    if form == "text":
        print(*comparison_text.text(found), sep="\n")
    else:
        made = comparison_json.as_json if form == "json" else comparison_text.markdown
        print(made(found), end="")
    if workflow := Workflow.running():
        for command in compared(found, workflow):
            print(command, file=sys.stderr)
    return 0 if found.passed else 1
