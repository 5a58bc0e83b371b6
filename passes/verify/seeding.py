"""Random numbers that do not depend on the order in which nodes run."""

from __future__ import annotations

import contextlib
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..graph.copy import all_graphs
from ..ops.in_place_form import DRAWS_AS
from ..ops.schema import is_operator
from .unrepeatable import operator_name

_OURS = ("aten", "prims", "_c10d_functional")


# Inductor's call that keeps a random node behind the one before it, and has its name.
_ORDERED = "control_deps"
# Operators of Inductor's that draw, and say so by no tag.
_DRAWS = ("inductor_seeds", "inductor_seed", "inductor_random", "inductor_randint")


def draws(node: Node) -> bool:
    """Return whether a node is one of torch's own random operators."""
    if node.op != "call_function" or not is_operator(node.target):
        return False
    op: Any = node.target
    return torch.Tag.nondeterministic_seeded in op.tags or operator_name(node).partition("::")[2] in _DRAWS


def strangers(before: GraphModule, after: GraphModule) -> list[str]:
    """Return the random nodes of a rewritten graph that the functional one does not have, by name.

    One that was put into a subgraph is another one: it has no seed of its own there.
    """
    return sorted({name for (name, _), _ in _drawing(after) - _drawing(before)})


def _drawing(gm: GraphModule) -> set[tuple[tuple[str, str], bool]]:
    """Return the names of the nodes that draw, each with its operator's, and whether it has a seed."""
    nodes = [node for graph in all_graphs(gm) for node in graph.graph.nodes]
    held = {drawn: node for node in nodes if (drawn := _held(node)) is not None}
    called = {node: held.get(node, node) for node in nodes if draws(node)}
    return {(_bears(node, caller), caller.graph is gm.graph) for node, caller in called.items()}


def _bears(node: Node, called: Node) -> tuple[str, str]:
    """Return the name that a node draws by, and its operator's: in place those of the functional one."""
    bears: tuple[str, str] = node.meta.get(DRAWS_AS) or (called.name, operator_name(node))
    return bears


def _held(node: Node) -> Node | None:
    """Return the random node that a call of ``control_deps`` holds: it runs one node behind others."""
    if str(node.target) != _ORDERED or node.op != "call_function":
        return None
    body: Any = getattr(node.graph.owning_module, str(node.args[1].target), None)  # type: ignore[union-attr]
    return next(filter(draws, body.graph.nodes), None) if isinstance(body, GraphModule) else None


def seeded(node: Node, evaluate: Callable[[], Any]) -> Any:
    """Evaluate a node: what may draw random numbers is given a seed of its own, whenever it runs.

    A random operator of torch's has one by its name, which rewriting keeps or notes. What a user's operator
    draws depends on the operator alone: its nodes get other names when wrappers are taken apart.
    """
    if node.op == "call_function":
        drawn = node if draws(node) else _held(node)
        if drawn is not None:
            _seed(_bears(drawn, node)[0])
        elif not is_operator(node.target) or str(node.target).partition(".")[0] not in _OURS:
            name = operator_name(node)
            if "::" in name and not name.startswith(_OURS):
                _seed(name)
    return evaluate()


def _seed(name: str) -> None:
    number = zlib.crc32(name.encode())
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number)


@contextlib.contextmanager
def undrawn() -> Iterator[None]:
    """Leave the states of torch's, Python's and numpy's generators afterwards as they were."""
    numpy = sys.modules.get("numpy")
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    own, numpys = random.getstate(), numpy.random.get_state() if numpy else None
    try:
        with torch.random.fork_rng(devices=list(devices)):
            yield
    finally:
        random.setstate(own)
        if numpy:
            numpy.random.set_state(numpys)
