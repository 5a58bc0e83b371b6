"""Parts of a functional graph that run on their own: what is left out becomes an input that is its value."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from .equivalence import effects
from .execution import Manner, cloned, leaves
from .seeding import seeded
from .shrink import shrunk

aten: Any = torch.ops.aten
_BUDGET = 120  # parts that are tried
_SECONDS = 10.0  # and how long
_MANY = 256  # elements from which on a tensor's numbers are replaced by simple ones
StillFails = Callable[[GraphModule, list[Any]], bool]


class Parts:
    """The parts of one graph.

    Args:
        gm: a functional graph whose arguments hold plain numbers.
        inputs: what it is run on.
    """

    def __init__(self, gm: GraphModule, inputs: Sequence[Any]) -> None:
        self._gm = gm
        self._values = _values(gm, inputs)
        calls = [n for n in gm.graph.nodes if n.op == "call_function"]
        (end,) = gm.graph.find_nodes(op="output")
        # Returned values come first: leaving one out takes most with it.
        self.items: list[Any] = [*(leaf for _, leaf in leaves(end.args[0])), *calls]
        self._returned = len(self.items) - len(calls)

    def smallest(self, still_fails: StillFails) -> tuple[GraphModule, list[Any]] | None:
        """Return a small part that fails as the graph does; ``None`` where not even the whole one fails."""
        tried: dict[frozenset[int], bool] = {}
        start = time.monotonic()

        def fails(chosen: list[int]) -> bool:
            key = frozenset(chosen)
            if key not in tried:
                if len(tried) >= _BUDGET or time.monotonic() - start > _SECONDS:
                    return False
                part = self.part(chosen)
                tried[key] = part is not None and still_fails(*part)
            return tried[key]

        everything = list(range(len(self.items)))
        if not fails(everything):
            return None
        found = self.part(shrunk(everything, fails, 40 * _BUDGET))
        assert found is not None
        return found[0], _simplified(*found, still_fails)

    def part(self, chosen: Sequence[int]) -> tuple[GraphModule, list[Any]] | None:
        """Return the graph of some items and copies of its inputs; ``None`` where they make none."""
        kept = set(chosen)
        maker = _Maker(self._gm, self._values)
        for i, node in enumerate(self.items[self._returned :], self._returned):
            if i in kept and not maker.keep(node):
                return None
        returned = [maker.mapped(node) for i, node in enumerate(self.items[: self._returned]) if i in kept]
        graph = maker.finished(tuple(returned))
        if not any(node.op == "call_function" for node in graph.nodes):
            return None
        given = [maker.given[node] for node in graph.find_nodes(op="placeholder")]
        return GraphModule(self._gm, graph), cloned(given)


class _Maker:
    def __init__(self, gm: GraphModule, values: dict[Node, Any]) -> None:
        self._gm, self._values = gm, values
        self._graph = Graph()
        self._copies: dict[Node, Any] = {}
        self.given: dict[Node, Any] = {}

    def keep(self, node: Node) -> bool:
        if node.target is operator.getitem and node.args[0] not in self._copies:
            return True  # it becomes an input where somebody needs it
        if any(not self._is_input(n) for n in node.all_input_nodes if n not in self._copies):
            return False
        args, kwargs = map_arg((node.args, node.kwargs), self.mapped)
        copy = self._graph.create_node(node.op, node.target, args, kwargs, node.name)
        self._note(node, copy)
        return True

    def mapped(self, node: Any) -> Any:
        """Return what stands for a node or a constant: its copy, an input, or its number."""
        if not isinstance(node, Node):
            return node
        if node not in self._copies:
            value = self._values.get(node)
            if node.op == "get_attr":
                self._note(node, self._graph.get_attr(str(node.target)))
            elif isinstance(value, torch.Tensor):
                with self._graph.inserting_before(next(iter(self._graph.nodes), None)):
                    copy = self._graph.placeholder(node.name)
                self._note(node, copy)
                self.given[copy] = value
            else:
                return value
        return self._copies[node]

    def _is_input(self, node: Node) -> bool:
        value = self._values.get(node)
        return node.op == "get_attr" or isinstance(value, torch.Tensor | bool | int | float)

    def _note(self, node: Node, copy: Node) -> None:
        self._copies[node] = copy
        if "stack_trace" in node.meta:
            copy.meta["stack_trace"] = node.meta["stack_trace"]

    def finished(self, returned: tuple[Any, ...]) -> Graph:
        self._graph.output(returned)
        self._graph.eliminate_dead_code()
        for node in self._graph.find_nodes(op="placeholder"):
            if not node.users:
                self._graph.erase_node(node)
        return self._graph


def _values(gm: GraphModule, inputs: Sequence[Any]) -> dict[Node, Any]:
    """Return the value of each node, without carrying out the final copies into inputs."""
    found: dict[Node, Any] = {}

    def around(node: Node, evaluate: Callable[[], Any]) -> Any:
        if node.target is aten.copy_.default:
            return found[node.args[0]]  # type: ignore[index]
        return seeded(node, evaluate)

    effects(gm, inputs, found.__setitem__, Manner(around, imitate=True))
    return found


def _simplified(gm: GraphModule, inputs: list[Any], still_fails: StillFails) -> list[Any]:
    """Return the inputs with simple numbers in the place of many, where it still fails then."""
    for i, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor) or value.numel() <= _MANY or value._base is not None:
            continue
        trial = cloned(inputs)
        numbers = torch.arange(value.numel(), device=value.device).remainder(7) + 1
        trial[i].copy_(numbers.view(value.shape).to(value.dtype))
        if still_fails(gm, cloned(trial)):
            inputs = trial
    return inputs
