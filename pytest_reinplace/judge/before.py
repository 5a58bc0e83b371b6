"""The functional graph as the pass under test got it, with what our analysis says of its candidates."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import graph_facts
from .graph_facts import CLONE, COPY, SCATTERS, family, maker_of, op_of, root_of, slot_of

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node

    from ..passes import Outcome

Slot = tuple[str, str]  # the name of a functional call, and the operand of which it makes a new version
# Functional operators, beside wrappers and index_put, that make a new version of their first operand.
_MADE = SCATTERS | {CLONE}


@dataclasses.dataclass(frozen=True, slots=True)
class Epilogue:
    """A ``copy_`` that writes back into an input what was made from that input.

    Args:
        node: its name.
        target: the name of the input.
        nbytes: bytes that it moves.
        source: the user's line.
        via: the functional calls between the input and the value, each with the slot that it makes anew.
        outcome: what our analysis says, ``None`` when it removes the copy.
    """

    node: str
    target: str
    nbytes: int
    source: str | None
    via: tuple[Slot, ...]
    outcome: Outcome | None


@dataclasses.dataclass(frozen=True, slots=True)
class Unseen:
    """Outputs of a graph whose storage its caller never sees, by position.

    Args:
        regenerated: those that AOTAutograd makes anew as views of something else.
        saved: those that only the backward graph reads.
    """

    regenerated: frozenset[int] = frozenset()
    saved: frozenset[int] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Before:
    """A snapshot: later rewriting of the graph does not change it.

    Args:
        nodes: the copied nodes by their names, in order.
        outcomes: our analysis, one for each candidate of the graph.
        epilogues: the write-backs.
        outputs: what it returns, each a copied node or none.
        unseen: those that share storage with nothing for its caller; ``None`` where that is not known.
        added: smaller copies that our pass makes so that a call may write in place, by what it writes.
        text: the graph as torch prints it.
    """

    nodes: dict[str, Node]
    outcomes: tuple[Outcome, ...]
    epilogues: tuple[Epilogue, ...]
    outputs: tuple[Any, ...]
    unseen: Unseen | None
    added: dict[Slot, tuple[Outcome, ...]]
    text: str

    def slot(self, outcome: Outcome) -> Slot:
        """Return the operand that a candidate stands for; arguments that are views of one base share it."""
        return outcome.node, slot_of(self.nodes[outcome.node], outcome.arg)

    def made_before(self, slot: Slot) -> Iterator[Slot]:
        """Yield what made the value that a call makes anew, the last first."""
        node, name = slot
        return (made for made, _ in _versions(graph_facts.operand(self.nodes[node], name)))

    @property
    def offered(self) -> int:
        """How many candidates there are, and copies into inputs, which a pass could make needless."""
        return len(self.outcomes) + sum(op_of(node) == COPY for node in self.nodes.values())

    @classmethod
    def of(cls, gm: GraphModule, *, lowered: bool = False, unseen: Unseen | None = None) -> Before:
        """Take the snapshot of a functional graph.

        Args:
            gm: the graph; the subgraphs that it calls are compiled, and judged, as graphs of their own.
            lowered: whether Inductor will lower what the pass under test makes of it.
            unseen: outputs that share storage with nothing for its caller; ``None`` where that is not known.

        Raises:
            pytest_reinplace.passes.GraphError: the graph is not functional.
        """
        from torch.fx import Graph

        from ..passes import INDUCTOR, NODE_BY_NODE, Options, analyze_graph, caller_of

        read = _without(gm, unseen.regenerated) if unseen and unseen.regenerated else gm
        target = INDUCTOR if lowered else NODE_BY_NODE
        report = analyze_graph(read.graph, Options(target=target, caller=caller_of(gm.graph)))
        copies: dict[Node, Node] = {}
        outputs: Any = Graph().graph_copy(gm.graph, copies)
        nodes = {node.name: copy for node, copy in copies.items()}
        written_back = {o.node: o for o in report.outcomes if o.op == COPY}
        epilogues = [_epilogue(name, node, written_back.get(name)) for name, node in nodes.items()]
        slots = {o.named: (o.node, slot_of(nodes[o.node], o.arg)) for o in report.outcomes if not o.added}
        added: dict[Slot, tuple[Outcome, ...]] = {}
        for outcome in report.outcomes:
            if outcome.spares in slots:
                slot = slots[outcome.spares]
                added[slot] = (*added.get(slot, ()), outcome)
        return cls(
            nodes=nodes,
            outcomes=tuple(o for o in report.outcomes if o.op != COPY and not o.added),
            epilogues=tuple(e for e in epilogues if e is not None),
            outputs=graph_facts.listed(outputs),
            unseen=unseen,
            added=added,
            text=str(gm.graph),
        )


def _without(gm: GraphModule, regenerated: frozenset[int]) -> GraphModule:
    """Return a copy that does not return what its caller makes anew: nothing has to be kept for that."""
    from ..passes.verify import copied

    copy = copied(gm)
    output = copy.graph.output_node()
    kept = [v for i, v in enumerate(graph_facts.listed(output.args[0])) if i not in regenerated]
    output.args = (tuple(kept),)
    return copy


def _epilogue(name: str, node: Node, outcome: Outcome | None) -> Epilogue | None:
    target: Any = node.args[0] if op_of(node) == COPY else None
    if not graph_facts.is_node(target) or target.op not in ("placeholder", "get_attr"):
        return None
    value: Any = node.args[1]
    if not graph_facts.is_node(value) or not _same_layout(target, value):
        return None
    via = _way(value, target)
    if not via:
        return None
    source = outcome.source if outcome is not None else None
    return Epilogue(name, target.name, graph_facts.nbytes(target), source, via, outcome)


def _same_layout(a: Node, b: Node) -> bool:
    one, two = a.meta.get("val"), b.meta.get("val")
    if one is None or two is None:
        return False
    return str((*one.shape, *one.stride())) == str((*two.shape, *two.stride()))


def _way(value: Node, target: Node) -> tuple[Slot, ...]:
    """Return the functional calls by which a value came from an input; empty when it did not."""
    via: list[Slot] = []
    for slot, operand in _versions(value):
        via.append(slot)
        if root_of(operand) is target:
            return tuple(via)
    return ()


def _versions(value: Any) -> Iterator[tuple[Slot, Any]]:
    """Yield the functional calls that a value came by, the last first, each with what it makes anew."""
    while graph_facts.is_node(value):
        root = root_of(value)
        made = maker_of(root)
        if made is None and not (_makes_version(root) or graph_facts.is_drawing(root)):
            return
        call, slot = made or (root, "self")
        value = graph_facts.operand(call, slot)
        yield (call.name, slot), value


def _makes_version(call: Node) -> bool:
    return op_of(call) in _MADE or family(call) == "index_put"


__all__ = ["Before", "Epilogue", "Slot", "Unseen"]
