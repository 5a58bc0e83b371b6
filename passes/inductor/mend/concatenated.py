"""What is returned and concatenated, where the concatenation is returned too: the two stay apart.

What is concatenated Inductor computes into the concatenation, and what else is made of it are views of that:
both results would share memory. A copy is computed there instead, which costs no more than it does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.alias import bases
from ...graph.emit import Emitter
from ..defects import defended

aten: Any = torch.ops.aten


def keep_apart(graph: Graph) -> int:
    """Concatenate copies of what is returned beside the concatenation; returns how many."""
    joined = graph.find_nodes(op="call_function", target=aten.cat.default)
    if not joined or not defended("returned-in-part"):
        return 0
    roots = bases(graph)
    returned = {roots[node] for node in graph.output_node().all_input_nodes if node in roots}
    count, emitter = 0, Emitter(graph)
    for node in joined:
        parts: Any = node.args[0]
        if node not in returned or returned.isdisjoint(map(roots.__getitem__, parts)):
            continue
        apart = [_copied(emitter, node, part) if _is_made(roots[part], returned) else part for part in parts]
        count += sum(new is not part for new, part in zip(apart, parts, strict=True))
        node.update_arg(0, apart)
    return count


def _is_made(root: Node, returned: set[Node]) -> bool:
    """Return whether a value is returned, and no input, in which nothing is computed."""
    return root in returned and root.op == "call_function"


def _copied(emitter: Emitter, node: Node, part: Node) -> Node:
    return emitter.view(node, aten.clone.default, (part,))
