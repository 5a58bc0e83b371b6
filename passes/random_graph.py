"""Random functional graphs: views, readers, candidates of every kind, ``copy_`` epilogues, aliases."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import torch
from torch.fx import Graph, GraphModule, Node

from . import random_collective, random_view, random_wrapper
from .draws import Draws
from .execution import RunError, cloned, run
from .random_pool import Pool
from .slots import overlaps_itself

aten = torch.ops.aten

_SHAPES = ((8,), (6,), (4, 6), (4, 4), (3, 2), (2, 4, 3), (2, 2, 4), (2, 2, 2, 3))
_LAYOUTS = ("plain", "plain", "plain", "offset", "transposed", "gaps", "rows", "expanded", "overlapping")


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
        if gm is None:
            return None
        # Fake tensors accept a few calls that torch refuses: a graph that does not run specifies nothing.
        run(gm, cloned(maker.builder.inputs))
    except (RuntimeError, ValueError, IndexError, RunError):
        return None
    return RandomGraph(gm, maker.builder.inputs, draws.taken)


class _Maker:
    """One graph in the making: inputs, steps, epilogue."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self.pool = Pool(draws)
        self.builder = self.pool.builder
        self.owned: list[Node] = []
        self.index: Node | None = None

    def make(self) -> GraphModule | None:
        draws = self.draws
        shape = draws.of(_SHAPES)
        for i in range(draws.between(1, 3)):
            self._input(shape if i == 0 or draws.chance(70) else draws.of(_SHAPES))
        if draws.chance(50):
            self.index = self.builder.placeholder(torch.tensor([1, 0]))
        for _ in range(draws.between(1, 9)):
            if self.pool.candidates < 7:
                self._step()
        outputs = self._epilogue()
        if not self.pool.candidates:
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
        """Add an input: contiguous or not, a part of a larger storage, or elements that share memory.

        Some belong to the module.
        """
        layout = self.draws.of(_LAYOUTS)
        count = math.prod(shape)
        data = torch.randint(0, 1 << 40, (2 * count + 4,), generator=self._generator())
        tensor = data[:count].clone().view(shape)
        if layout == "offset":
            tensor = data[2 : count + 2].view(shape)
        elif layout == "transposed" and len(shape) > 1:
            tensor = tensor.view(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)
        elif layout == "gaps":
            tensor = data[: 2 * count].view(*shape[:-1], 2 * shape[-1])[..., ::2]
        elif layout == "rows":  # a part of each row, as of a packed qkv
            tensor = data[: 2 * count].view(*shape[:-1], 2 * shape[-1])[..., 1 : 1 + shape[-1]]
        elif layout == "expanded" and len(shape) > 1:
            tensor = data[: shape[-1]].clone().expand(shape)
        elif layout == "overlapping":  # windows one element apart
            tensor = data[:count].clone().as_strided(shape, (1,) * len(shape))
        make = self.builder.buffer if self.draws.chance(12) else self.builder.placeholder
        node = make(tensor)
        self.pool.keep(node)
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
            (3, self._collective),
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
        outputs = [self.pool.any(fresh=80) for _ in range(draws.between(0, 2))]
        for node in self.owned:
            if draws.chance(65) and not overlaps_itself(node.meta["val"]):
                into = node
                if draws.chance(5):
                    into = random_view.inside(self.builder, draws, node)
                source = self.pool.alike(into, last=draws.chance(75))
                if source is not None and self.pool.storage(source) != self.pool.storage(into):
                    self.builder.call(aten.copy_.default, into, source)
        if draws.chance(15):
            outputs.append(draws.of(self.owned))
        if not outputs or draws.chance(30):
            outputs.append(self.pool.latest())
        return outputs

    # -- steps ---------------------------------------------------------------------------------

    def _some_view(self, node: Node) -> Node:
        return random_view.some(self.builder, self.draws, node)

    def _view(self) -> None:
        self.pool.keep(self._some_view(self.pool.any()))

    def _read(self) -> None:
        call, node = self.builder.call, self.pool.any(fresh=70)
        value = node.meta["val"]
        kind = self.draws.of(("neg", "add", "sum", "flip", "cat", "repeat"))
        if kind == "add":
            self.pool.keep(call(aten.add.Tensor, node, self.pool.shaped(value.shape, value.dtype)))
        elif kind == "sum":
            self.pool.keep(call(aten.sum.default, node))
        elif kind == "flip" and value.dim():
            self.pool.keep(call(aten.flip.default, node, [self.draws.below(value.dim())]))
        elif kind == "cat" and value.dim():
            self.pool.keep(call(aten.cat.default, [node, self.pool.shaped(value.shape, value.dtype)]))
        elif kind == "repeat":
            self.pool.keep(call(aten.mul.Tensor, node, node))
        else:
            self.pool.keep(call(aten.neg.default, node))

    def _collective(self) -> None:
        """Start a collective, do something else meanwhile, and wait for it."""
        node = self.pool.any(fresh=75)
        if not node.meta["val"].dim() or not node.meta["val"].numel() or not random_collective.is_possible():
            return
        started = random_collective.start(self.builder, self.draws, node)
        for _ in range(self.draws.of((1, 0, 2))):
            self._step()
        self.pool.keep(random_collective.wait(self.builder, started))

    def _clone(self) -> None:
        node = self.pool.any()
        dense = self.draws.chance(15)
        options = {"memory_format": torch.contiguous_format} if dense else {}
        self.pool.candidates += 1
        self.pool.keep(self.builder.call(aten.clone.default, node, **options))

    def _scatter(self) -> None:
        node = self.pool.writable(rank=1)
        if node is None:
            return
        view = random_view.scattered(self.builder, self.draws, node)
        part = view.node.meta["val"]
        source = self.pool.shaped(part.shape, part.dtype)
        self.pool.replaced(node, view.back(self.builder, source))

    def _index_put(self) -> None:
        node, draws, call = self.pool.writable(rank=1), self.draws, self.builder.call
        if node is None or self.index is None:
            return
        value = node.meta["val"]
        dims = [d for d in range(min(2, value.dim())) if value.shape[d] >= 2]
        if not dims:
            return
        dim, index, accumulate = draws.of(dims), self.index, False
        if draws.chance(20):
            flat = self.pool.shaped(torch.Size([2]), torch.int64)
            index, accumulate = call(aten.remainder.Scalar, flat, value.shape[dim]), True
        shape = torch.Size([*value.shape[:dim], 2, *value.shape[dim + 1 :]])
        source = self.pool.shaped(shape if draws.chance(85) else torch.Size([]), value.dtype)
        target = aten._unsafe_index_put.default if draws.chance(25) else aten.index_put.default
        more = (accumulate or draws.chance(25),)
        new = call(target, node, [*([None] * dim), index], source, *(more if more[0] else ()))
        self.pool.replaced(node, new)

    def _wrapped(self) -> None:
        node = self.pool.writable()
        if node is not None:
            random_wrapper.wrap(self.pool, node)

    def _through_view(self) -> None:
        """Write into a view and scatter it back, as functionalization does."""
        node, draws = self.pool.writable(rank=1), self.draws
        if node is None:
            return
        chain = [random_view.scattered(self.builder, draws, node)]
        if draws.chance(35) and chain[0].node.meta["val"].dim():
            chain.append(random_view.scattered(self.builder, draws, chain[0].node))
        inner = chain[-1].node
        if draws.chance(70):
            new = random_wrapper.wrap(self.pool, inner)
        else:
            new = self.pool.shaped(inner.meta["val"].shape, inner.meta["val"].dtype)
        if new is None or new.meta["val"].shape != inner.meta["val"].shape:
            return
        for view in reversed(chain):
            new = view.back(self.builder, new)
        self.pool.replaced(node, new)
