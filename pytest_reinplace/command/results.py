"""``pytest-reinplace results``: what a run measured, as a page of Markdown with a plot beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..base import whole_file
from ..base.visible import visible
from ..measure.result import Result
from ..record import stored
from ..reports import results_page
from ..reports.template import missing
from .errors import CommandError


def run(report: Path, out: Path, about: str) -> int:
    """Write the page and its plot; returns the exit code.

    Raises:
        stored.StoredError: the report cannot be used.
        CommandError: nothing was measured in it, a package is missing, or a file cannot be written.
    """
    if absent := missing():
        raise CommandError(f"needs {' and '.join(absent)}: pip install {' '.join(absent)}")
    found = stored.read(report)
    results = _measured(found)
    if not results:
        raise CommandError(f"{visible(report)}: nothing was measured; run pytest with --reinplace-measure")
    plot = out.with_suffix(".svg")
    try:
        whole_file.write(plot, results_page.plot(results))
        whole_file.write(out, results_page.page(results, _versions(found.document), plot.name, about))
    except OSError as error:
        raise CommandError(f"cannot write {visible(out)}: {error.strerror or error}") from None
    print(f"{visible(out)}: {len(results)} entries")
    return 0


def _measured(found: stored.Stored) -> list[Result]:
    tests = found.document["tests"]
    try:
        return [
            Result.from_dict(tests[name]["measured"]) for name in found.tests if "measured" in tests[name]
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CommandError(
            f"{visible(found.name)}: what was measured is damaged: {visible(error, 200)}"
        ) from None


def _versions(document: Any) -> dict[str, str]:
    versions = document.get("versions")
    pairs = versions.items() if isinstance(versions, dict) else ()
    return {name: value for name, value in sorted(pairs) if isinstance(value, str)}
