"""Outputs that share a storage in the rewritten graph, and do not in the functional one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import graph_facts
from .graph_facts import maker_of, op_of, root_of, slot_of

if TYPE_CHECKING:
    from torch.fx import Node

    from .after import After
    from .before import Before


def labels(before: Before, after: After) -> Iterator[str]:
    """Yield the writes in place by which an output came to share the storage of an input or another output.

    Nothing is said where it is not known which outputs the caller sees.
    """
    if before.unseen is None:
        return
    unseen = before.unseen.regenerated | before.unseen.saved
    known: dict[Any, Any] = {}
    owners: dict[Any, str] = {}  # the storages that the caller sees, each with its functional root
    told: dict[Node, None] = {}
    for position, (old, new) in enumerate(zip(before.outputs, after.outputs, strict=False)):
        if position in unseen or not graph_facts.nbytes(old) or not graph_facts.is_node(new):
            continue
        root, now = root_of(old, known), after.root(new)
        own = now.name if _is_input(now) else root.name
        if owners.setdefault(now, own) != root.name:
            told[root] = None
    for root in told:
        yield from _labels(before, root)


def _is_input(root: Any) -> bool:
    return graph_facts.is_node(root) and root.op in ("placeholder", "get_attr")


def _labels(before: Before, root: Node) -> Iterator[str]:
    """Yield the labels of the candidates that make a functional value; its operator where it is none."""
    call, slot = maker_of(root) or (root, "self")
    mine = [o for o in before.outcomes if o.node == call.name]
    exact = [o.label for o in mine if slot_of(call, o.arg) == slot]
    yield from exact or [o.label for o in mine] or [op_of(call) or call.name]
