"""Constants that the backward stores into or adds to, made in the backward.

AOTAutograd merges equal constants of forward and backward. What a scatter of the backward begins with is then
saved: it is written in the forward, held from then on, and one kernel copies it for several scatters at once.
But a constant is computed of nothing. So the backward gets one of its own, which Inductor computes where a
scatter begins. Its sizes are a tuple, and those of the forward's are a list: torch does the same with them,
and does not merge what is written in two ways.

It is for operators that are computed of gradients: nothing of that is merged with anything in the forward.
Where more than two scatters begin with it there is a kernel more for each of the others, which what is no
longer held has to be worth.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from ...graph.alias import written
from ...graph.emit import Emitter
from ...graph.sizes import bytes_of
from ...ops.computed import is_pointwise
from ...ops.schema import is_operator, traits_of
from ...post_grad.times import Times
from ..schedule.cost import start

aten: Any = torch.ops.aten


def make_late(graph: Graph) -> int:
    """Have the backward make what it would be given of the forward's constants; returns how many."""
    equal: dict[str, list[Node]] = {}
    for node in graph.find_nodes(op="call_function", target=aten.full.default):
        equal.setdefault(repr((node.args, node.kwargs)), []).append(node)  # 0.0 is not -0.0, nor 0
    if not equal:
        return 0
    times, made = Times(graph), 0
    for nodes in equal.values():
        users = {user for node in nodes for user in node.users}
        called = (user for user in users if is_operator(user.target) and times.is_gradient(user))
        late = sorted(called, key=times.order.__getitem__)
        if all(map(times.is_late, nodes)) or not _is_worth_it(nodes[0], late):
            continue
        if set(nodes).isdisjoint(n for user in users for n in written(user)):
            _give(graph, nodes, late)
            made += 1
    return made


def _is_worth_it(constant: Node, users: list[Node]) -> bool:
    """Return whether a constant would be saved for these users, and costs more than the kernels it spares.

    It is written in the forward and read in the backward, and held.
    """
    stored = [user for user in users if not is_pointwise(user)]
    kernels = sum(not traits_of(user.target).is_computed_scatter for user in stored) - 2
    is_on_cpu = constant.meta["val"].device.type == "cpu"
    return bool(stored) and 3 * bytes_of(constant) >= kernels * start(on_cpu=is_on_cpu)


def _give(graph: Graph, constants: list[Node], users: list[Node]) -> None:
    """Give users a constant of their own, which is not merged with any other."""
    size, *value = constants[0].args
    args = tuple(size), *value  # type: ignore[arg-type]
    own = Emitter(graph).view(users[0], aten.full.default, args, constants[0].kwargs)
    for constant in constants:
        constant.replace_all_uses_with(own, delete_user_cb=set(users).__contains__)
