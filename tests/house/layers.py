"""The order of our rooms, from the lowest up: a file imports only from its own room or from a lower one."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

# Rooms of passes/, the lowest first. An entry is a package or one module; the longest that fits decides.
# A face (``__init__``) stands where its entry does, and a package's face without one above its modules.
PASSES = (
    *("errors", "_torch", "reason", "hint_form", "applied", "report", "required"),
    "memory",
    "ops",
    "graph",
    "facts",
    *(f"reinplacing.{room}" for room in ("facts", "layout", "write", "kinds", "model", "decide")),
    "reinplacing",
    *("post_grad", "ir"),  # ir comes with its first pass
    *(f"inductor.{room}" for room in ("_torch", "lowering", "defects", "identity")),
    *(f"inductor.{room}" for room in ("schedule", "mend")),
    "inductor",
    "__init__",
    *("verify", "verify.optimum", "verify.__init__"),
    "ledger",
    *("fuzz", "fuzz.program", "strategies"),
    "oracle",
)

# Rooms of the plugin; its own modules, ``.``, are the hooks and what users see.
PLUGIN = (
    *(
        "base",
        "judge",
        "picture",
        "capture",
        "call",
        "copies",
        "lowered",
        "entry",
        "expected",
        "golden",
        "record",
        "compare",
        "measure",
        "reports",
        "reports.html",
        "memory_views",
    ),
    *("session", ".", "command"),
)

ORDERS = {"passes": PASSES, "pytest_reinplace": PLUGIN}

MODULES_OF_A_PACKAGE = 17


class Arrow(NamedTuple):
    """One import between two modules of a folder, by their names inside it."""

    source: str
    line: int
    target: str


def room(module: str, order: Sequence[str]) -> str | None:
    """Return the room of a module: the longest entry that names it, or a package that it is in."""
    fitting = [e for e in order if module == e or module.startswith(f"{e}.")]
    at_the_top = "." if "." in order and "." not in module else None
    return max(fitting, key=len, default=at_the_top)


def climbing(arrows: Iterable[Arrow], order: Sequence[str]) -> list[str]:
    """List the imports that go up, and those of modules that have no room."""
    floor = {entry: i for i, entry in enumerate(order)}
    found = []
    for arrow in arrows:
        ends = [room(module, order) for module in (arrow.source, arrow.target)]
        if None in ends:
            found.append(f"{arrow.source}:{arrow.line} -> {arrow.target}: no room is declared")
        elif floor[ends[1]] > floor[ends[0]]:  # type: ignore[index]
            found.append(f"{arrow.source}:{arrow.line} imports {arrow.target}, which stands above")
    return found


def circle(arrows: Iterable[Arrow]) -> list[str]:
    """Return the modules of a circle of imports, empty where there is none."""
    graph: dict[str, set[str]] = {}
    for arrow in arrows:
        graph.setdefault(arrow.source, set()).add(arrow.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def crowded(modules: Iterable[str], limit: int = MODULES_OF_A_PACKAGE) -> Mapping[str, int]:
    """Return the packages with more modules than a room holds; a face is not counted."""
    counts: dict[str, int] = {}
    for module in modules:
        package, _, name = module.rpartition(".")
        if name != "__init__":
            counts[package] = counts.get(package, 0) + 1
    return {package: n for package, n in counts.items() if n > limit}
