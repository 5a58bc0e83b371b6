"""The fewest bytes that any legal rewrite of a small graph copies, by trying every set of candidates."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ... import _torch
from ...errors import ReinplaceError
from ..execution import leaves
from .simulation import Choice, Illegal, Simulation
from .slots import copy_bytes, slots
from .variation import variations

aten: Any = torch.ops.aten
_LIMIT = 14  # candidates; 2**14 runs of a small graph take some ten seconds


def minimum_clone_bytes(
    functional_gm: GraphModule, example_inputs: Sequence[Any], *, below: int | None = None
) -> int:
    """Return the fewest bytes that a legal rewrite of the graph copies on these inputs.

    Every subset of the candidates is forced in place and run on real tensors, cheapest copies first, and
    it is legal when every node computes what it does as written and the contract of
    ``assert_equivalent`` holds at the end, on these inputs and with other numbers in them and in the
    indices that the graph makes (``variation.py``): no rule follows from luck. Counted are: the bytes of each
    candidate that is copied; of each operand copied instead, so that its node may write; of each
    ``copy_`` into an input that remains; of each output copied so that it shares nothing. The order of
    the nodes stays as it is. Mutable operators must be adversarial, or luck makes a choice look legal.

    Args:
        functional_gm: a functional graph with at most 14 candidates.
        example_inputs: real tensors, one for each placeholder.
        below: stop when no less than this many bytes are possible, and return this number then.

    Raises:
        ReinplaceError: more than 14 candidates.
    """
    simulation = Simulation(functional_gm, example_inputs)
    count = len(simulation.candidates)
    if count > _LIMIT:
        raise ReinplaceError(
            f"expected a graph with at most {_LIMIT} candidates, got {count}: the search tries all subsets; "
            "use assert_equivalent for larger graphs"
        )
    choices = sorted([*simulation.candidates, *simulation.operands], key=lambda c: c.nbytes)
    best = math.inf if below is None else below
    barred = _Barred(choices, functional_gm)
    varied = _Varied(simulation)
    for price, bits in _cheapest_first([c.nbytes for c in choices]):
        if price >= best:
            break
        if bits in barred:
            continue
        copied = frozenset(c for i, c in enumerate(choices) if bits >> i & 1)
        try:
            cost = simulation.cost(copied)
            if cost < best:  # else it decides nothing whether it is right by luck
                varied.check(copied)
                best = cost
        except Illegal as error:
            barred.add(bits, error.node)
    assert best < math.inf, "copying everything is always legal"
    return int(best)


class _Varied:
    """The same choices on the same graph with other contents."""

    def __init__(self, simulation: Simulation) -> None:
        self._first = simulation

    @functools.cached_property
    def _others(self) -> list[tuple[Simulation, dict[Node, Node]]]:
        graph, found = self._first.gm.graph, []
        for number, (gm, inputs) in enumerate(variations(self._first.gm, self._first.inputs)):
            twin = dict(zip(graph.nodes, gm.graph.nodes, strict=True))
            found.append((Simulation(gm, inputs, uneven=number), twin))
        return found

    def check(self, copied: frozenset[Choice]) -> None:
        """Run a choice on all of them, first on the one that refused last: it is likely to refuse again.

        Raises:
            Illegal: it is right by luck alone; ``node`` is one of the first graph.
        """
        for i, (simulation, twin) in enumerate(self._others):
            try:
                simulation.cost(frozenset(dataclasses.replace(c, node=twin[c.node]) for c in copied))
            except Illegal as error:
                self._others.insert(0, self._others.pop(i))
                back = {theirs: ours for ours, theirs in twin.items()}
                raise Illegal(back.get(error.node) if error.node else None) from None


class _Barred:
    """Subsets known to be illegal: what a node computes depends on the choices made up to it alone."""

    def __init__(self, choices: list[Choice], gm: GraphModule) -> None:
        time = {node: i for i, node in enumerate(gm.graph.nodes)}
        self._until = {
            node: sum(1 << i for i, c in enumerate(choices) if time[c.node] <= at)
            for node, at in time.items()
        }
        self._found: dict[int, set[int]] = {}

    def add(self, bits: int, node: Node | None) -> None:
        if node is not None:
            mask = self._until[node]
            self._found.setdefault(mask, set()).add(bits & mask)

    def __contains__(self, bits: int) -> bool:
        return any(bits & mask in found for mask, found in self._found.items())


def _cheapest_first(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the sum and the bits of every subset of ascending ``sizes``, in the order of the sums."""
    yield 0, 0
    if not sizes:
        return
    # Each subset but the first has one parent: its last element was appended, or moved on by one place.
    heap = [(sizes[0], 1, 0)]
    while heap:
        price, bits, last = heapq.heappop(heap)
        yield price, bits
        if last + 1 < len(sizes):
            more, bit = sizes[last + 1], 1 << (last + 1)
            heapq.heappush(heap, (price + more, bits | bit, last + 1))
            heapq.heappush(heap, (price - sizes[last] + more, bits ^ (1 << last) | bit, last + 1))


def copied_bytes(gm: GraphModule, functional_gm: GraphModule | None = None) -> int:
    """Return the bytes that a graph copies, by counting its nodes; sizes must be static.

    Counted are functional candidates, ``aten.clone``, ``copy_`` into inputs, and copies into fresh
    ``empty_strided`` memory. A write in place of a part (``copy_`` into a view) is no copy.

    Args:
        gm: a functional or a rewritten graph.
        functional_gm: for a rewritten graph, the one it was made from; its ``copy_`` nodes are known by
            their names, so that they are told from writes in place.
    """
    spec = functional_gm if functional_gm is not None else gm
    back = {n.name for n in spec.graph.nodes if n.target is aten.copy_.default}
    return sum(_copied(node, back) for node in gm.graph.nodes)


def _copied(node: Node, back: set[str]) -> int:
    if node.target is aten.copy_.default:
        into: Any = node.args[0]
        fresh = into.target is aten.empty_strided.default or _is_padded(into)
        return _nbytes(into) if fresh or node.name in back else 0
    if node.target is aten.clone.default:
        return _nbytes(node)
    found = slots(node)
    kept = node.meta.get("only_clone_these_tensors")
    if kept is not None and node.target is not _torch.hop("triton_kernel_wrapper_functional"):
        found = [(s, n) for s, n in found if (s[0] if isinstance(s, tuple) else s) in kept]
    return sum(copy_bytes(node, slot, operand.meta["val"]) for slot, operand in found)


def _is_padded(node: Node) -> bool:
    """Return whether a view is all that fresh memory was made for, but for some bytes before it."""
    base: Any = node.args[0] if node.target is aten.as_strided.default else None
    if base is None or base.target is not aten.empty_strided.default or len(base.users) > 1:
        return False
    val = node.meta["val"]
    last = val.storage_offset() + sum((n - 1) * s for n, s in zip(val.size(), val.stride(), strict=True))
    return bool(last + 1 == base.meta["val"].numel()) and base.meta["val"].dim() == 1


def _nbytes(node: Node) -> int:
    tensors = [v for _, v in leaves(node.meta["val"]) if isinstance(v, torch.Tensor)]
    return sum(int(t.numel()) * t.element_size() for t in tensors)
