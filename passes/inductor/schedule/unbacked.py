"""What computes a size waits for the size that it is computed from, where Inductor forgets that."""

from __future__ import annotations

from typing import Any

from . import _torch


def order(nodes: list[Any]) -> int:
    """Let operations wait for what makes the unbacked symbols that they need; returns how many waits.

    Each such operation comes behind in the order of the graph, so no wait goes in a circle.

    Args:
        nodes: the operations, in the order of the graph.
    """
    maker: dict[Any, str] = {}  # of a symbol: the buffer by which its operation is waited for
    count = 0
    for node in nodes:
        for symbol in _torch.forgotten_symbols(node) if maker else ():
            if symbol in maker:
                _torch.wait_for(node, maker[symbol])
                count += 1
        for output in _torch.outputs(node)[:1]:
            for symbol in _torch.symbols_made(node):
                maker.setdefault(symbol, _torch.name(output))
    if count:
        _torch.count_ancestors(nodes[0])
    return count
