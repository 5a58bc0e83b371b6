"""The functional graph as the pass under test got it, with what our analysis says of its candidates."""

from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any

from . import operators
from .operators import COPY, SCATTERS, op_of, root_of

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node

    from .passes import Outcome


@dataclasses.dataclass(frozen=True, slots=True)
class Epilogue:
    """A ``copy_`` that writes back into an input what was made from that input.

    Args:
        node: its name.
        target: the name of the input.
        nbytes: bytes that it moves.
        source: the user's line.
        via: the names of the functional calls between the input and the value.
        outcome: what our analysis says, ``None`` when it removes the copy.
    """

    node: str
    target: str
    nbytes: int
    source: str | None
    via: tuple[str, ...]
    outcome: Outcome | None


@dataclasses.dataclass(frozen=True, slots=True)
class Before:
    """A snapshot: later rewriting of the graph does not change it.

    Args:
        nodes: the copied nodes by their names.
        outcomes: our analysis, one for each candidate of the graph.
        epilogues: the write-backs.
        text: the graph as torch prints it.
    """

    nodes: dict[str, Node]
    outcomes: tuple[Outcome, ...]
    epilogues: tuple[Epilogue, ...]
    text: str

    @classmethod
    def of(cls, gm: GraphModule) -> Before:
        """Take the snapshot of a functional graph.

        Raises:
            pytest_reinplace.passes.GraphError: the graph is not functional.
        """
        from torch.fx import Graph

        from .passes import analyze

        report = analyze(gm)
        copies: dict[Node, Node] = {}
        Graph().graph_copy(gm.graph, copies)
        nodes = {node.name: copy for node, copy in copies.items()}
        written_back = {o.node: o for o in report.outcomes if o.op == COPY}
        epilogues = [_epilogue(name, node, written_back.get(name)) for name, node in nodes.items()]
        return cls(
            nodes=nodes,
            outcomes=tuple(o for o in report.outcomes if _is_candidate(o)),
            epilogues=tuple(e for e in epilogues if e is not None),
            text=str(gm.graph),
        )


def _is_candidate(outcome: Outcome) -> bool:
    """Return whether an outcome is of the program, and not a copy that our pass would add to help itself."""
    if outcome.op in (COPY, "output"):
        return False
    return all(blocker.node != outcome.node for blocker in outcome.blockers)


def _epilogue(name: str, node: Node, outcome: Outcome | None) -> Epilogue | None:
    if op_of(node) != COPY or not all(hasattr(arg, "op") for arg in node.args[:2]):
        return None
    target: Any = node.args[0]
    value: Any = node.args[1]
    if target.op not in ("placeholder", "get_attr") or not _same_layout(target, value):
        return None
    via = _way(value, target)
    if not via:
        return None
    val = target.meta.get("val")
    return Epilogue(name, target.name, nbytes_of(val), _line(outcome, node), via, outcome)


def _line(outcome: Outcome | None, node: Node) -> str | None:
    return outcome.source if outcome is not None else None


def nbytes_of(val: Any) -> int:
    """Return the bytes of a fake tensor; 0 where its size is not a plain number."""
    numel = val.numel() if val is not None else 0
    return numel * val.element_size() if isinstance(numel, int) else 0


def _same_layout(a: Node, b: Node) -> bool:
    one, two = a.meta.get("val"), b.meta.get("val")
    if one is None or two is None:
        return False
    return str((*one.shape, *one.stride())) == str((*two.shape, *two.stride()))


def _way(value: Node, target: Node) -> tuple[str, ...]:
    """Return the functional calls by which a value came from an input; empty when it did not."""
    via: list[str] = []
    while True:
        value = root_of(value)
        if value is target:
            return tuple(via)
        source = _functional_operand(value)
        if source is None:
            return ()
        call, value = source
        via.append(call.name)


def _functional_operand(value: Node) -> tuple[Node, Node] | None:
    """Return the call that made a value out of an operand, and the operand."""
    if op_of(value) in SCATTERS or _family(op_of(value)) == "index_put":
        return value, value.args[0]  # type: ignore[return-value]
    if value.target is not operator.getitem:
        return None
    call: Any = value.args[0]
    arg = operators.result_argument(call, value.args[1])
    found: Any = operators.operand(call, arg) if arg is not None else None
    return (call, found) if operators.is_node(found) else None


def _family(name: str) -> str:
    """Return an operator's name without namespace, ``_unsafe_`` and the mark of an in-place form."""
    return name.rpartition("::")[2].removeprefix("_unsafe_").rstrip("_")


def family(node: Node) -> str:
    """Return what the functional and the in-place form of an operator share, empty for other nodes."""
    name = op_of(node)
    return _family(name) if "::" in name else ""


__all__ = ["Before", "Epilogue", "family", "nbytes_of"]
