"""What a pass of ours does when it fails: the graph is as it was, and a warning says so."""

from __future__ import annotations

import logging
import pathlib
import traceback

from ..errors import ReinplaceError
from ..graph.journal import Journal

log: logging.Logger = logging.getLogger(__name__)
_PASSES = pathlib.Path(__file__).parents[1]


def skip(journal: Journal, what: str, error: Exception) -> str:
    """Put a graph back as it was, and warn of what failed, once, with the place where it did.

    Returns the warning.
    """
    journal.restore()
    why = str(error)
    if not isinstance(error, ReinplaceError):  # whose message names the node
        ours = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(str(_PASSES))]
        at = f"{pathlib.Path(ours[-1].filename).name}:{ours[-1].lineno} in {ours[-1].name}" if ours else "?"
        why = f"{type(error).__name__}: {error} ({at})"
    log.warning("%s: %s", what, why)
    return f"{what}: {why}"
