"""Random functional graphs: views, readers, candidates of every kind, ``copy_`` epilogues, aliases."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from . import adversary, random_view
from .draws import Draws
from .graph_builder import GraphBuilder

aten = torch.ops.aten

_SHAPES = ((8,), (6,), (4, 6), (4, 4), (3, 2), (2, 4, 3), (2, 2, 4))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RandomGraph:
    """A functional graph with inputs to run it on, and the choices that made it.

    Args:
        gm: the graph; every node has ``meta["val"]``.
        inputs: real tensors, one for each placeholder.
        choices: what :func:`strategies.replayed` builds it from again.
    """

    gm: GraphModule
    inputs: list[torch.Tensor]
    choices: list[int]

    def copy(self) -> GraphModule:
        """Return a copy of the graph, to be rewritten."""
        graph = Graph()
        output = graph.graph_copy(self.gm.graph, {}, return_output_node=True)
        assert isinstance(output, tuple)
        graph.output(output[0]).meta.update(output[1].meta)
        return GraphModule(self.gm, graph)

    def __str__(self) -> str:
        """Return a runnable reproduction, with the graph as a comment."""
        lines = [f"# {line}" for line in str(self.gm.graph).splitlines() if line.strip()]
        for node in self.gm.graph.nodes:
            value = node.meta.get("val")
            if node.op in ("placeholder", "get_attr") and isinstance(value, torch.Tensor):
                where = f"offset {value.storage_offset()} of {value.untyped_storage().nbytes()} bytes"
                lines.append(
                    f"# {node.name}: {value.dtype} {tuple(value.shape)}, strides {value.stride()}, {where}"
                )
        lines.append("from pytest_reinplace.passes import reinplace, strategies, verify")
        lines.append(f"graph = strategies.replayed({self.choices})")
        lines.append(f"rewritten = strategies.replayed({self.choices}).gm")
        lines.append("print(reinplace(rewritten), rewritten.graph)")
        lines.append("verify.assert_equivalent(graph.gm, rewritten, graph.inputs)")
        return "\n".join(lines)


def build(draws: Draws) -> RandomGraph | None:
    """Build one graph from choices; ``None`` when it has no candidate or torch refuses an operator."""
    maker = _Maker(draws)
    try:
        gm = maker.make()
    except (RuntimeError, ValueError, IndexError):
        return None
    return None if gm is None else RandomGraph(gm, maker.builder.inputs, draws.taken)


class _Maker:
    """One graph in the making. ``pool`` holds what can be used; a stale storage has a newer version."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.builder = GraphBuilder()
        self.pool: list[Node] = []
        self.owned: list[Node] = []
        self.stale: set[int] = set()
        self.candidates = 0
        self.index: Node | None = None

    # -- the whole -----------------------------------------------------------------------------

    def make(self) -> GraphModule | None:
        draws = self.draws
        shape = draws.of(_SHAPES)
        for i in range(draws.between(1, 3)):
            self._input(shape if i == 0 or draws.chance(70) else draws.of(_SHAPES))
        if draws.chance(50):
            self.index = self.builder.placeholder(torch.randperm(2, generator=self._generator()))
        for _ in range(draws.between(1, 9)):
            if self.candidates < 7:
                self._step()
        outputs = self._epilogue()
        if not self.candidates:
            return None
        gm = self.builder.finished(outputs)
        return gm if any(self._is_candidate(n) for n in gm.graph.nodes) else None

    def _is_candidate(self, node: Node) -> bool:
        name = str(node.target)
        return node.op == "call_function" and any(
            word in name for word in ("auto_functionalized", "index_put", "scatter", "clone")
        )

    def _generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(len(self.builder.inputs) + 977 * self.draws.below(50))

    def _input(self, shape: tuple[int, ...]) -> None:
        """Add an input: contiguous, transposed, or a part of a larger storage; some belong to the module."""
        layout = self.draws.of(("plain", "plain", "plain", "offset", "transposed", "gaps"))
        count = math.prod(shape)
        data = torch.randint(0, 1 << 40, (2 * count + 4,), generator=self._generator())
        tensor = data[:count].clone().view(shape)
        if layout == "offset":
            tensor = data[2 : count + 2].view(shape)
        elif layout == "transposed" and len(shape) > 1:
            tensor = tensor.view(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)
        elif layout == "gaps":
            tensor = data[: 2 * count].view(*shape[:-1], 2 * shape[-1])[..., ::2]
        make = self.builder.buffer if self.draws.chance(12) else self.builder.placeholder
        node = make(tensor)
        self.pool.append(node)
        self.owned.append(node)

    def _step(self) -> None:
        actions: tuple[tuple[int, Callable[[], None]], ...] = (
            (1, lambda: None),
            (5, self._clone),
            (10, self._wrapped),
            (8, self._through_view),
            (5, self._index_put),
            (5, self._scatter),
            (10, self._view),
            (7, self._read),
        )
        ticket = self.draws.below(sum(weight for weight, _ in actions))
        for weight, action in actions:
            ticket -= weight
            if ticket < 0:
                action()
                return

    def _epilogue(self) -> list[Node]:
        """Copy values back into inputs, and choose what is returned."""
        draws = self.draws
        outputs = [self._any(fresh=80) for _ in range(draws.between(0, 2))]
        for node in self.owned:
            if draws.chance(65):
                into = node
                if draws.chance(5):
                    into = random_view.inside(self.builder, draws, node)
                source = self._alike(into, last=draws.chance(75))
                if source is not None and self._storage(source) != self._storage(into):
                    self.builder.call(aten.copy_.default, into, source)
        if draws.chance(15):
            outputs.append(draws.of(self.owned))
        if not outputs or draws.chance(30):
            outputs.append(self._latest())
        return outputs

    # -- choosing operands ---------------------------------------------------------------------

    def _storage(self, node: Node) -> int:
        return int(node.meta["val"].untyped_storage()._cdata)

    def _fresh(self) -> list[Node]:
        return [n for n in self.pool if self._storage(n) not in self.stale] or self.pool

    def _latest(self) -> Node:
        return self._fresh()[-1]

    def _any(self, fresh: int = 85, rank: int = 0) -> Node:
        """Choose a value, newer ones and the present versions more often."""
        options = self._fresh() if self.draws.chance(fresh) else self.pool
        options = [n for n in options if n.meta["val"].dim() >= rank] or [
            n for n in self.pool if n.meta["val"].dim() >= rank
        ]
        if self.draws.chance(50):
            options = options[-3:]
        return options[-1 - self.draws.below(len(options))]

    def _writable(self, rank: int = 0) -> Node | None:
        """Choose a value without elements that share memory."""
        for _ in range(3):
            node = self._any(rank=rank)
            if not random_view.overlaps_itself(node.meta["val"]) and node.meta["val"].numel():
                return node
        return None

    def _alike(self, like: Node, *, last: bool) -> Node | None:
        """Return a value of the same shape and dtype."""
        shape, dtype = like.meta["val"].shape, like.meta["val"].dtype
        found = [n for n in self.pool if n.meta["val"].shape == shape and n.meta["val"].dtype == dtype]
        if not found:
            return None
        return found[-1] if last else self.draws.of(found)

    def _shaped(self, shape: Any, dtype: torch.dtype) -> Node:
        """Return a value of a shape: one that is there, a part of another one, or a constant."""
        found = [n for n in self.pool if n.meta["val"].shape == shape and n.meta["val"].dtype == dtype]
        if found and self.draws.chance(75):
            return found[-1 - self.draws.below(len(found))]
        count = math.prod(shape)
        for node in reversed(self.pool):
            value = node.meta["val"]
            if value.dtype == dtype and value.is_contiguous() and value.numel() >= count > 0:
                start = self.draws.between(0, value.numel() - count)
                flat = self.builder.call(aten.view.default, node, [value.numel()])
                part = self.builder.call(aten.slice.Tensor, flat, 0, start, start + count)
                return self._keep(self.builder.call(aten.view.default, part, list(shape)))
        return self._keep(self._constant(shape, dtype))

    def _constant(self, shape: Any, dtype: torch.dtype) -> Node:
        """Return distinct numbers: writing equal ones over each other would hide a wrong rewrite."""
        call, start = self.builder.call, 1000 * len(self.pool)
        options = {"dtype": dtype, "device": torch.device("cpu"), "pin_memory": False}
        if not len(shape):
            return call(aten.full.default, [], start, **options)
        flat = call(aten.arange.start_step, start, start + math.prod(shape), 1, **options)
        return call(aten.view.default, flat, list(shape))

    def _keep(self, node: Node) -> Node:
        self.pool.append(node)
        return node

    def _replaced(self, old: Node, new: Node) -> Node:
        """Note that ``new`` is what became of ``old``."""
        self.stale.add(self._storage(old))
        self.candidates += 1
        return self._keep(new)

    # -- steps ---------------------------------------------------------------------------------

    def _some_view(self, node: Node) -> Node:
        return random_view.some(self.builder, self.draws, node)

    def _view(self) -> None:
        self._keep(self._some_view(self._any()))

    def _read(self) -> None:
        call, node = self.builder.call, self._any(fresh=70)
        value = node.meta["val"]
        kind = self.draws.of(("neg", "add", "sum", "flip", "cat", "repeat"))
        if kind == "add":
            self._keep(call(aten.add.Tensor, node, self._shaped(value.shape, value.dtype)))
        elif kind == "sum":
            self._keep(call(aten.sum.default, node))
        elif kind == "flip" and value.dim():
            self._keep(call(aten.flip.default, node, [self.draws.below(value.dim())]))
        elif kind == "cat" and value.dim():
            self._keep(call(aten.cat.default, [node, self._shaped(value.shape, value.dtype)]))
        elif kind == "repeat":
            self._keep(call(aten.mul.Tensor, node, node))
        else:
            self._keep(call(aten.neg.default, node))

    def _clone(self) -> None:
        node = self._any()
        dense = self.draws.chance(15)
        options = {"memory_format": torch.contiguous_format} if dense else {}
        self.candidates += 1
        self._keep(self.builder.call(aten.clone.default, node, **options))

    def _scatter(self) -> None:
        node = self._writable(rank=1)
        if node is None:
            return
        view = random_view.scattered(self.builder, self.draws, node)
        part = view.node.meta["val"]
        source = self._shaped(part.shape, part.dtype)
        self._replaced(node, view.back(self.builder, source))

    def _index_put(self) -> None:
        node, draws, call = self._writable(rank=1), self.draws, self.builder.call
        if node is None or self.index is None:
            return
        value = node.meta["val"]
        dims = [d for d in range(min(2, value.dim())) if value.shape[d] >= 2]
        if not dims:
            return
        dim, index, accumulate = draws.of(dims), self.index, False
        if draws.chance(20):
            flat = self._shaped(torch.Size([2]), torch.int64)
            index, accumulate = call(aten.remainder.Scalar, flat, value.shape[dim]), True
        shape = torch.Size([*value.shape[:dim], 2, *value.shape[dim + 1 :]])
        source = self._shaped(shape if draws.chance(85) else torch.Size([]), value.dtype)
        target = aten._unsafe_index_put.default if draws.chance(25) else aten.index_put.default
        more = (accumulate or draws.chance(25),)
        new = call(target, node, [*([None] * dim), index], source, *(more if more[0] else ()))
        self._replaced(node, new)

    def _wrapped(self) -> None:
        node = self._writable()
        if node is not None:
            self._wrap(node)

    def _through_view(self) -> None:
        """Write into a view and scatter it back, as functionalization does."""
        node, draws = self._writable(rank=1), self.draws
        if node is None:
            return
        chain = [random_view.scattered(self.builder, draws, node)]
        if draws.chance(35) and chain[0].node.meta["val"].dim():
            chain.append(random_view.scattered(self.builder, draws, chain[0].node))
        inner = chain[-1].node
        if draws.chance(70):
            new = self._wrap(inner)
        else:
            new = self._shaped(inner.meta["val"].shape, inner.meta["val"].dtype)
        if new is None or new.meta["val"].shape != inner.meta["val"].shape:
            return
        for view in reversed(chain):
            new = view.back(self.builder, new)
        self._replaced(node, new)

    def _wrap(self, node: Node) -> Node | None:
        """Add a wrapper of a mutable operator that writes ``node``; returns the new version of it."""
        op = adversary.operator(self.draws.of(adversary.names()))
        return self._wrap_v1(op, node) if self.draws.chance(50) else self._wrap_v2(op, node)

    def _arguments(self, op: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return the mutable arguments of an operator, and values for those that it only reads."""
        written, read = [], {}
        for argument in op._schema.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                written.append(argument)
            elif str(argument.type) == "List[Tensor]":
                read[argument.name] = [self._any(fresh=75) for _ in range(self.draws.between(0, 3))]
            elif str(argument.type).startswith("Optional") and self.draws.chance(50):
                read[argument.name] = None
            else:
                read[argument.name] = self._any(fresh=75)
        return written, read

    def _operand(self, argument: Any, first: list[Node]) -> Any:
        """Return what is written through one argument: a node, a list of nodes or ``None``."""
        kind = str(argument.type)
        if kind.startswith("Optional") and self.draws.chance(35):
            return None
        if "List" in kind:
            rest = [self._writable() for _ in range(self.draws.between(1, 2))]
            return [*(first.pop() for _ in first[:]), *(n for n in rest if n is not None)]
        return first.pop() if first else self._writable()

    def _wrap_v1(self, op: Any, node: Node) -> Node | None:
        written, read = self._arguments(op)
        first = [node]
        values = {a.name: self._operand(a, first) for a in written}
        if any(values[a.name] is None and not str(a.type).startswith("Optional") for a in written):
            return None
        results = self.builder.v1(op, **read, **values)
        for extra in results[: len(results) - len(written)]:
            if extra is not None:
                self._keep(extra)
        mine = None
        for a, result in zip(written, results[len(results) - len(written) :], strict=True):
            old = values[a.name] if isinstance(result, list) else [values[a.name]]
            for was, now in zip(old, result if isinstance(result, list) else [result], strict=True):
                if now is not None:
                    self._replaced(was, now)
                    mine = now if was is node else mine
        return mine

    def _wrap_v2(self, op: Any, node: Node) -> Node | None:
        written, read = self._arguments(op)
        first = [node]
        views: dict[str, Any] = {}
        bases: list[Node] = []
        for argument in written:
            value = self._operand(argument, first)
            if value is None and not str(argument.type).startswith("Optional"):
                return None
            views[argument.name] = self._based(value, bases)
        results = self.builder.v2(op, views, **read)
        for extra in results[: len(results) - len(bases)]:
            if extra is not None:
                self._keep(extra)
        mine = None
        for was, now in zip(bases, results[len(results) - len(bases) :], strict=True):
            self._replaced(was, now)
            mine = now if was is node else mine
        return mine

    def _based(self, value: Any, bases: list[Node]) -> Any:
        """Return the pair ``(base, view)`` for an operand of a v2 wrapper."""
        if value is None:
            return None
        if isinstance(value, list):
            return [self._based(v, bases) for v in value]
        if bases and self.draws.chance(35):
            value = self.draws.of(bases)
        if value not in bases:
            bases.append(value)
        view = value
        for _ in range(self.draws.of((0, 0, 1, 1, 2))):
            view = random_view.inside(self.builder, self.draws, view)
        return (value, view)
