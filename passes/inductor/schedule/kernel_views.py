"""Views that kernels return, as those of complex tensors are: a write through one is ordered with the others.

Inductor knows which buffer such a view is one of, and lets a write wait for what read any of them before.
What reads one afterwards it orders only with writes through the very same view: it may move before others.
Nor does it know that an input is written that way, of which on a GPU it may have made an aligned copy.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from . import _torch


def order(nodes: list[Any]) -> int:
    """Let operations wait for earlier writes of what they read by another view; returns how many waits.

    Args:
        nodes: the operations, in the order of the graph.
    """
    home = _homes(nodes)
    writers: dict[str, list[tuple[Any, str]]] = defaultdict(list)
    count = 0
    for node in nodes if home else ():
        used = {dep.name for dep in node.read_writes.reads if not _torch.is_order_only(dep)}
        outputs = node.get_outputs()
        changed = {name for output in outputs for name in output.get_mutations()}
        places = {home[name] for name in used | changed if name in home}
        for earlier, name in [w for place in places for w in writers[place]]:
            if earlier is not node and name not in used:
                _torch.wait_for(node, name)
                count += 1
        for output in outputs:
            for place in {home[name] for name in output.get_mutations() if name in home}:
                writers[place].append((node, output.get_name()))
                _torch.note_written(place)
    if count:
        nodes[0].scheduler.compute_ancestors()
    return count


def _homes(nodes: list[Any]) -> dict[str, str]:
    """Return in which buffer each view lies that a kernel returned, and that buffer itself.

    What a kernel that writes returns is what it wrote, by the name of which all is ordered.
    """
    found: dict[str, str] = {}
    for node in nodes:
        outputs = node.get_outputs()
        for output in outputs if not any(o.get_mutations() for o in outputs) else ():
            for name in output.get_aliases():
                found[output.get_name()] = found.setdefault(name, name)
    if found:
        for node in nodes:
            for output in node.get_outputs():
                for name in output.get_mutations():
                    if name in found:
                        found.setdefault(output.get_name(), found[name])
    return found
