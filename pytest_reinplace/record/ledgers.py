"""What passes and rules did to the graphs of a test: figures of it, and how often a rule fired."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from . import plain

Graphs = Iterable[Mapping[str, Any]]


def applications_of(graphs: Graphs) -> list[Mapping[str, Any]] | None:
    """Return the applications of graphs of a document; ``None`` where none was recorded."""
    found = [graph["applications"] for graph in graphs if graph.get("applications") is not None]
    return [one for applications in found for one in applications] if found else None


def figures_of(graphs: Graphs) -> dict[str, int | float]:
    """Return how many copies the applications brought, and how long they took; nothing where none was."""
    found = applications_of(graphs)
    if found is None:
        return {}
    copies = sum(len(one["copies_added"]) for one in found)
    return {"pass_copies": copies, "pass_seconds": sum(one["seconds"] for one in found)}


def copies_by(graphs: Graphs) -> Counter[str]:
    """Return how many copies each rule brought, or each pass where no rule is known."""
    counts = Counter[str]()
    for one in applications_of(graphs) or ():
        counts[names_in(one)[0]] += len(one["copies_added"])
    return +counts  # without those that brought none


def matches_of(graphs: Graphs, rule: str) -> int | None:
    """Return how often a rule fired, or a pass of that name changed a graph; ``None`` where it is not known.

    Args:
        graphs: of a test.
        rule: its name, in which ``*`` is any text.
    """
    found = applications_of(graphs)
    return None if found is None else sum(any(_bears(n, rule) for n in names_in(one)) for one in found)


def unchecked_in(graph: Mapping[str, Any]) -> str:
    """Return why passes and rules of a graph were not checked although they were to be; empty elsewhere."""
    why = graph.get("unfollowed")
    return (
        f"not checked: {why}" if why else str(plain.applied().unchecked_of(graph.get("applications") or ()))
    )


def names_in(application: Mapping[str, Any]) -> list[str]:
    """Return the names by which an application is called: its rule, and its pass."""
    return [name for name in (application["rule"], application["pass"]) if name]


def _bears(name: str, rule: str) -> bool:
    return name == rule or fnmatch.fnmatchcase(name, rule.replace("[", "[[]").replace("?", "[?]"))
