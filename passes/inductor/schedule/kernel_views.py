"""Views that kernels return, as those of complex tensors are: their buffer is written and read in order.

Inductor knows which buffer such a view is one of, and forgets it once that is written: what reads a view
then is ordered only with writes through the very same view, and may move before or behind others. Nor does
it know that an input is written that way, of which on a GPU it may have made an aligned copy.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from . import _torch


def order(nodes: list[Any]) -> int:
    """Let operations wait for what goes before in a buffer that has such views; returns how many waits.

    A read waits for the last write, a write for that and for the reads since.

    Args:
        nodes: the operations, in the order of the graph.
    """
    home = _homes(nodes)
    last: dict[str, tuple[Any, str]] = {}  # the operation that wrote a buffer, and the name that it gave it
    readers: dict[str, list[tuple[Any, str]]] = defaultdict(list)
    count = 0
    for node in nodes if home else ():
        used = {dep.name for dep in _torch.reads(node) if not _torch.is_order_only(dep)}
        outputs = _torch.outputs(node)
        changed = {name: _torch.name(output) for output in outputs for name in _torch.overwritten(output)}
        written = {home[name]: own for name, own in changed.items() if name in home}
        read = {home[name] for name in used if name in home}
        before = [last[place] for place in read | written.keys() if place in last]
        before += [reader for place in written for reader in readers.pop(place, ())]
        for earlier, name in before:
            if earlier is not node and name not in used:
                _torch.wait_for(node, name)
                count += 1
        for place, own in written.items():
            last[place] = (node, own)
            _torch.note_written(place)
        for place in read - written.keys():
            readers[place] += [(node, _torch.name(output)) for output in outputs[:1]]
    if count:
        _torch.count_ancestors(nodes[0])
    return count


def _homes(nodes: list[Any]) -> dict[str, str]:
    """Return in which buffer each view lies that a kernel returned, and that buffer itself.

    What a kernel that writes returns is what it wrote, by the name of which all is ordered.
    """
    found: dict[str, str] = {}
    for node in nodes:
        outputs = _torch.outputs(node)
        for output in outputs if not any(_torch.overwritten(o) for o in outputs) else ():
            for name in _torch.viewed(output):
                found[_torch.name(output)] = found.setdefault(name, name)
    if found:
        for node in nodes:
            for output in _torch.outputs(node):
                for name in _torch.overwritten(output):
                    if name in found:
                        found.setdefault(_torch.name(output), found[name])
    return found
