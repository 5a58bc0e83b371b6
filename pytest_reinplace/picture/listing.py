"""A graph as lines that a person reads: one node each, in the manner of a program."""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..judge.graph_facts import V1, V2, op_of

if TYPE_CHECKING:
    from torch.fx import Node

MOST_LINES = 2000
MOST_CHARACTERS = 300
_AROUND = 3
_HEAD = 40
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Args:
        node: the name of the node; empty for a line that stands for others that were left out.
        text: what is shown, of at most ``MOST_CHARACTERS``.
    """

    node: str
    text: str

    def to_dict(self) -> dict[str, str]:
        """Return the line as JSON-ready data."""
        return {"node": self.node, "text": self.text}


def lines_of(nodes: Mapping[str, Node]) -> list[Line]:
    """Return a line for each node.

    Args:
        nodes: the nodes of a graph by the names that are shown, in order.
    """
    names = {node: name for name, node in nodes.items()}
    found = []
    for name, node in nodes.items():
        told = _told(node, names)
        found.append(Line(name, shortened(_text(name, node, names), MOST_CHARACTERS - len(told)) + told))
    return found


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text of at most so many characters; an ellipsis says that some are left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def abridged(lines: Sequence[Line], telling: Collection[str], most: int = MOST_LINES) -> list[Line]:
    """Return at most ``most`` lines, and one for each gap between them.

    Args:
        lines: of one graph.
        telling: the names of nodes that are kept before others, with those around them.
        most: how many lines are kept.
    """
    if len(lines) <= most:
        return list(lines)
    found = [i for i, line in enumerate(lines) if line.node in telling]
    order: dict[int, None] = dict.fromkeys(found)
    order.update(dict.fromkeys(range(min(_HEAD, most))))
    for distance in range(1, _AROUND + 1):
        order.update(dict.fromkeys(j for i in found for j in (i - distance, i + distance)))
    order.update(dict.fromkeys(range(len(lines))))
    kept = sorted([i for i in order if 0 <= i < len(lines)][:most])
    return list(_with_gaps(lines, kept))


def _with_gaps(lines: Sequence[Line], kept: Sequence[int]) -> Iterable[Line]:
    position = 0
    for index in [*kept, len(lines)]:
        if index > position:
            # A gap next to one that an earlier abridging left: that one counts for a line.
            yield Line("", f"… {index - position} lines left out")
        if index < len(lines):
            yield lines[index]
        position = index + 1


def _text(name: str, node: Node, names: Mapping[Node, str]) -> str:
    if node.op == "output":
        return f"return {_argument(node.args[0], names)}"
    kind = _type(node.meta.get("val"))
    head = f"{name}: {kind}" if kind else name
    if node.op == "placeholder":
        return head
    if node.op == "get_attr":
        return f"{head} = self.{node.target}"
    return f"{head} = {_call(node, names)}"


def _told(node: Node, names: Mapping[Node, str]) -> str:
    """Return what a wrapper was told that will be carried out later: it still looks functional then."""
    told = node.meta.get("only_clone_these_tensors")
    if told is None or op_of(node) not in (V1, V2):
        return ""
    bases: Any = node.kwargs.get("_all_bases", ())
    clones = [_argument(bases[i], names) if isinstance(i, int) else str(i) for i in told]
    return shortened(f"  # clones {', '.join(clones)}" if clones else "  # in place", MOST_CHARACTERS // 2)


def _call(node: Node, names: Mapping[Node, str]) -> str:
    if node.target is operator.getitem:
        return f"{_argument(node.args[0], names)}[{_argument(node.args[1], names)}]"
    parts = [_argument(arg, names) for arg in node.args]
    parts += [f"{key}={_argument(arg, names)}" for key, arg in node.kwargs.items()]
    return f"{target_text(node)}({', '.join(parts)})"


def target_text(node: Node) -> str:
    """Return what a node calls, as ``aten.add.Tensor`` or ``operator.getitem``; no addresses of memory."""
    target: Any = node.target
    if node.op in ("call_method", "call_module"):
        return f"self.{target}"
    if callable(getattr(target, "name", None)):  # an operator: its text is aten.add.Tensor
        return str(target)
    name = getattr(target, "__name__", None)
    module = str(getattr(target, "__module__", "")).removeprefix("_")
    return f"{module}.{name}" if name else _ADDRESS.sub("", str(target))


def _argument(value: Any, names: Mapping[Node, str]) -> str:
    """Return an argument as text; long lists are cut, as the line will be."""
    from torch.fx import Node

    if isinstance(value, Node):
        return names.get(value, value.name)
    if isinstance(value, list | tuple):
        inner = ", ".join(_argument(item, names) for item in value[:MOST_CHARACTERS])
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_argument(item, names)}' for key, item in value.items())}}}"
    if isinstance(value, slice):
        return ":".join("" if part is None else _argument(part, names) for part in _parts(value))
    if callable(value) and callable(getattr(value, "name", None)):
        return str(value)  # an operator
    return shortened(" ".join(repr(value).split()))


def _parts(value: slice) -> tuple[Any, ...]:
    return (value.start, value.stop) if value.step is None else (value.start, value.stop, value.step)


def _type(value: Any) -> str:
    """Return the type of a fake value: ``float32[8, 4]``, a tuple of such, empty where it says nothing."""
    import torch

    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, list | tuple):
        return f"({', '.join(_type(item) or 'None' for item in value[:MOST_CHARACTERS])})"
    return "" if value is None else type(value).__name__
