"""What lowering copied in the graphs of a test: the copies that it added, and figures of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Graphs = Iterable[Mapping[str, Any]]


def added_in(graphs: Graphs) -> list[Mapping[str, Any]] | None:
    """Return the copies that lowering added to graphs of a document; ``None`` where that is not known."""
    found = [graph["copies"] for graph in graphs if graph.get("copies") is not None]
    return [one for copies in found for one in copies if not one["meant"]] if found else None


def figures_of(graphs: Graphs) -> dict[str, int]:
    """Return how many copies lowering added, and their bytes; nothing where that is not known."""
    found = added_in(graphs)
    if found is None:
        return {}
    return {"copies": len(found), "copy_bytes": sum(one["nbytes"] for one in found)}
