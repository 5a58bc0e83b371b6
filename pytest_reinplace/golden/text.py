"""A graph as text that says what it computes, and nothing of how it came to be.

Nodes are called by what they compute, ``cat``, ``cat_1``, and symbols ``A``, ``B`` in the order in which they
come. Nothing is cut.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..judge.graph_facts import TRITON, TRITON_CALL, V1, V2, op_of
from ..picture.listing import target_text
from .symbols import Symbols

if TYPE_CHECKING:
    from torch.fx import Graph, GraphModule, Node

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_NUMBERS = re.compile(r"(_?\d+)+$")
_INDENT = "    "


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line of a graph.

    Args:
        text: the whole line.
        plain: the same without the types.
    """

    text: str
    plain: str

    def __str__(self) -> str:
        return self.text


class Writer:
    """Writes graphs, the second with the names of the first for nodes that both have."""

    def __init__(self) -> None:
        self._symbols = Symbols()
        self._known: dict[str, tuple[str, Any, str]] = {}
        self._counts: dict[str, int] = {}

    def lines(self, gm: GraphModule) -> list[Line]:
        """Return a line for each node of a module; those of subgraphs stand below theirs, indented."""
        return list(self._lines(gm, gm.graph, "", {}))

    def _lines(self, gm: GraphModule, graph: Graph, indent: str, names: dict[Node, str]) -> Iterator[Line]:
        for node in graph.nodes:
            names[node] = self._name(node)
            value: Any = _attribute(gm, node) if node.op == "get_attr" else None
            is_graph = hasattr(value, "graph")
            yield self._line(node, names, indent, is_graph=is_graph)
            if is_graph:
                yield from self._inside()._lines(value, value.graph, indent + _INDENT, {})

    def _inside(self) -> Writer:
        """Return a writer for a subgraph, whose names are its own."""
        writer = Writer()
        writer._symbols = self._symbols
        return writer

    def _name(self, node: Node) -> str:
        known = self._known.get(node.name)
        if known is not None and known[:2] == (node.op, node.target):
            return known[2]
        base = _base(node)
        count = self._counts[base] = self._counts.get(base, -1) + 1
        name = f"{base}_{count}" if count else base
        self._known[node.name] = node.op, node.target, name
        return name

    def _line(self, node: Node, names: dict[Node, str], indent: str, *, is_graph: bool) -> Line:
        if node.op == "output":
            text = f"{indent}return {self._argument(node.args[0], names)}"
            return Line(text, text)
        kind = "graph" if is_graph else self._symbols.type_of(node.meta.get("val"))
        rest = self._right_side(node, names)
        head = f"{indent}{names[node]}"
        return Line(f"{head}: {kind}{rest}" if kind else f"{head}{rest}", f"{head}{rest}")

    def _right_side(self, node: Node, names: dict[Node, str]) -> str:
        if node.op == "placeholder":
            return ""
        if node.op == "get_attr":
            return f" = self.{node.target}"
        if node.target is operator.getitem:
            return f" = {self._argument(node.args[0], names)}[{self._argument(node.args[1], names)}]"
        kwargs = dict(node.kwargs)
        if op_of(node) in (TRITON, TRITON_CALL):  # the numbers count what the process has seen
            from ..passes.facts import called

            kwargs = {"kernel": called(node), **kwargs}
            del kwargs["kernel_idx"], kwargs["constant_args_idx"]
        parts = [self._argument(arg, names) for arg in node.args]
        parts += [f"{key}={self._argument(arg, names)}" for key, arg in kwargs.items()]
        return f" = {target_text(node)}({', '.join(parts)}){self._told(node, names)}"

    def _told(self, node: Node, names: dict[Node, str]) -> str:
        """Return what a wrapper was told that will be carried out later: it still looks functional then."""
        told = node.meta.get("only_clone_these_tensors")
        if told is None or op_of(node) not in (V1, V2, TRITON):
            return ""
        bases: Any = node.kwargs.get("_all_bases", ())
        clones = [self._argument(bases[i], names) if isinstance(i, int) else str(i) for i in told]
        return f"  # clones {', '.join(clones)}" if clones else "  # in place"

    def _argument(self, value: Any, names: dict[Node, str]) -> str:
        import torch
        from torch.fx import Node

        def told(item: Any) -> str:
            return self._argument(item, names)

        if isinstance(value, Node):
            return names.get(value, value.name)
        if isinstance(value, list | tuple):
            inner = ", ".join(map(told, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key!r}: {told(item)}' for key, item in value.items())}}}"
        if isinstance(value, slice):
            ends = (value.start, value.stop) if value.step is None else (value.start, value.stop, value.step)
            return ":".join("" if end is None else told(end) for end in ends)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return self._symbols.told(value)
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return str(value).removeprefix("torch.")
        if isinstance(value, torch.device):
            return str(value)
        if callable(value) and callable(getattr(value, "name", None)):
            return str(value)  # an operator
        text = _ADDRESS.sub("", " ".join(repr(value).split()))
        return self._symbols.in_text(text) if isinstance(value, str) else text


def _base(node: Node) -> str:
    """Return what a node is called by, without a number."""
    target: Any = node.target
    if node.op == "output":
        return "output"
    if node.op == "call_function":
        name = getattr(target, "name", None)
        if callable(name):
            target = str(name()).rpartition("::")[2].partition(".")[0]
        else:
            target = getattr(target, "__name__", target)
    name = re.sub(r"\W", "_", str(target)).strip("_")
    return _NUMBERS.sub("", name).rstrip("_") or "x"


def _attribute(gm: GraphModule, node: Node) -> Any:
    value: Any = gm
    for part in str(node.target).split("."):
        value = getattr(value, part, None)
    return value
