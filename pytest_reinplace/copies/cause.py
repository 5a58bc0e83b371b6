"""Why a copy is made, and whether the program means it: said of what the seam saw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..base.lowering_copy import LoweringCopy

if TYPE_CHECKING:
    from torch.fx import Node

    from ._torch import Made, Note

# Inductor's functions by whose calls the cause is known, and what is copied then.
_CALLERS = (
    ("WhileLoop._clone_aliased_inputs", "aliased operands"),
    ("WhileLoop.create", "loop"),
    ("DeviceCopy.create", "device"),
    ("Conditional.create", "subgraph"),
    ("InvokeSubgraph.create", "subgraph"),
    ("Switch.create", "subgraph"),
)
# What only leads from the node that is lowered to the copy, for its result.
_ON_THE_WAY = ("ExternKernel.require_", "GraphLowering.run_node", "maybe_apply_channels_last_stride_order")
_MOVES = ("aten::_to_copy", "aten::to", "prims::device_put", "aten::copy", "aten::copy_", "aten::_copy_from")


def causes(made: Iterable[Made], graph: str = "") -> Iterator[LoweringCopy]:
    """Yield the copies of one graph, each with its cause.

    Args:
        made: all that are in its code.
        graph: the name of a subgraph, empty for the graph itself.
    """
    known: set[tuple[str, frozenset[Node]]] = set()
    for one in made:
        makers = frozenset(_makers(one))
        key = (one.of, makers)
        # A part of a concatenation, and what is written into an input, are places that the program asks for.
        is_again = bool(makers) and key in known and (one.note is None or one.note.kind == "copy")
        known.add(key)
        yield _told(one, "again" if is_again else _cause(one, makers), makers, graph)


def _makers(one: Made) -> Iterator[Node]:
    """Yield the nodes that make a value of their own between what is copied and the copy: no views."""
    own = one.origins if one.note is None or one.extern else one.note.between
    home = one.origins[0].graph if one.origins else None
    return (n for n in own if n.op == "call_function" and n.graph in (home, None) and not _is_view(n))


def _is_view(node: Node) -> bool:
    from ..passes import facts

    return facts.alias_of(node) is not None or facts.called(node) in ("aten::_unsafe_view", "aten::reshape")


def _cause(one: Made, makers: frozenset[Node]) -> str:
    if one.extern == "no turn":
        return "no turn"
    if one.extern == "DeviceCopy":
        return "program" if any(_called(n) in _MOVES for n in makers) else "device"
    note = one.note
    if note is None and not one.extern and not one.is_noted:
        return "unknown"
    if one.extern or makers:
        return "program"
    if note is None:
        return "unknown"
    if note.kind == "concat":
        # Of an input, and of a part of something, the program itself asks for a copy.
        return "program" if one.is_given or not one.is_whole else "concat"
    if note.kind == "write":
        is_copy = note.node is not None and _called(note.node) in ("aten::copy_", "aten::copy")
        return "program" if is_copy else "write"
    return _of_copy(one, note)


def _of_copy(one: Made, note: Note) -> str:
    for caller, cause in _CALLERS:
        if any(call.startswith(caller) for call in note.calls):
            return cause
    if note.node is None or not note.calls:
        return "unknown"
    if not _is_result(note):
        return "strides"
    # What is only saved for the backward is laid out as Inductor computes with it.
    is_returned = any(user.op == "output" for user in note.node.users)
    return "output" if is_returned and one.is_as_traced else "readers"


def _is_result(note: Note) -> bool:
    """Return whether a copy is made of what a node gave, after it was lowered."""
    return all(any(way in call for way in _ON_THE_WAY) for call in note.calls)


def _told(one: Made, cause: str, makers: frozenset[Node], graph: str) -> LoweringCopy:
    note = one.note
    node = _for_whom(one, cause, makers)
    value = note.operand if note is not None and note.operand is not None else one.maker
    if cause in ("output", "readers") and note is not None:
        value = note.node
    return LoweringCopy(
        label=_label(one, node, cause),
        nbytes=one.nbytes,
        cause=cause,
        buffer=one.buffer,
        of=one.of,
        node="" if node is None else node.name,
        value="" if value is None else value.name,
        source=None if node is None else _where(node),
        device=one.device,
        meant=cause in ("program", "no turn"),
        graph=graph,
        hint=_hint(one, cause, node),
    )


def _for_whom(one: Made, cause: str, makers: frozenset[Node]) -> Node | None:
    """Return the node that a copy is made for: of what the program means, the one that says so."""
    if cause == "program" and makers and (one.note is None or one.note.kind == "copy"):
        return max(makers, key=list(next(iter(makers)).graph.nodes).index)
    node = one.note.node if one.note is not None else None
    if node is not None and node.op == "placeholder":  # it is laid out for who reads it
        return next((user for user in node.users if user.op == "call_function"), node)
    if node is not None:
        return node
    return one.origins[-1] if one.origins else None


def _label(one: Made, node: Node | None, cause: str) -> str:
    if node is None:
        return one.buffer
    op, note = _called(node), one.note
    if note is not None and note.node is not None and note.node.op == "placeholder":
        argument = _argument(node, note.node)
        return f"{op}.{argument}" if argument else op
    if cause in ("output", "readers", "loop"):
        return f"{op}.output"
    if cause == "no turn":
        return f"{op}.operands[{one.buffer.partition('[')[2]}"
    if note is None or note.operand is None or node is not note.node:
        return op
    argument = _argument(node, note.operand)
    return f"{op}.{argument}" if argument else op


def _argument(node: Node, operand: Node) -> str:
    """Return the name of the argument by which a call gets an operand; empty where it gets it twice."""
    from ..passes import facts

    names = facts.schema_of(node.target).names if facts.is_operator(node.target) else ()
    if not names:  # what runs subgraphs has operands in a row, some of them in lists
        operands = [n for value in node.args for n in _nodes(value) if n.op != "get_attr"]
        found = [f"operands[{i}]" for i, n in enumerate(operands) if n is operand]
        return found[0] if len(found) == 1 else ""
    found = []
    for name, value in (*zip(names, node.args, strict=False), *node.kwargs.items()):
        if isinstance(value, list | tuple):
            found += [f"{name}[{i}]" for i, part in enumerate(value) if part is operand]
        elif value is operand:
            found.append(name)
    return found[0] if len(found) == 1 else ""


def _nodes(value: object) -> list[Node]:
    from torch.fx import Node

    parts = value if isinstance(value, list | tuple) else [value]
    return [part for part in parts if isinstance(part, Node)]


def _hint(one: Made, cause: str, node: Node | None) -> str:
    if node is None:
        return ""
    op = _called(node)
    if cause in ("strides", "output", "readers") and op == "aten::convolution":
        return "hand input and weight in torch.channels_last, as Inductor computes convolutions"
    if cause == "strides" and not op.startswith(("aten::", "prims::")):
        return f"where {op} takes any strides, define it with the tag torch.Tag.flexible_layout"
    operand = one.note.operand if one.note is not None else None
    if cause == "strides" and operand is not None and operand.op == "placeholder":
        return "pass a tensor that has these strides"
    if cause == "concat" and one.maker is not None and _called(one.maker) == "aten::cat":
        return "a value is computed into one concatenation only: concatenate all parts at once"
    return ""


def _called(node: Node) -> str:
    from ..passes import facts

    return facts.called(node)


def _where(node: Node) -> str | None:
    from ..passes import facts

    return facts.where(node)
