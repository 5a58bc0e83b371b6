"""Random functional graphs: views, readers, candidates of every kind, ``copy_`` epilogues, aliases."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..graph.copy import copied, subgraphs
from ..ops import higher_order
from ..verify.execution import RunError, cloned, run
from ..verify.laid_out import overlaps_itself
from ..verify.optimum.slots import slots
from . import rare_view
from . import view as random_view
from .draws import Draws
from .pool import Pool
from .step import Steps

aten: Any = torch.ops.aten
_SHAPES = ((8,), (6,), (4, 6), (4, 4), (3, 2), (2, 4, 3), (2, 2, 4), (2, 2, 2, 3))
_LAYOUTS = ("plain", "plain", "plain", "offset", "transposed", "gaps", "rows", "expanded", "overlapping")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RandomGraph:
    """A functional graph with inputs to run it on, and the choices that made it.

    Args:
        gm: the graph; every node has ``meta["val"]``.
        inputs: real tensors, one for each placeholder.
        choices: what ``strategies.replayed`` builds it from again.
        wild: whether rare things were among them.
    """

    gm: GraphModule
    inputs: list[torch.Tensor]
    choices: list[int]
    wild: bool = False

    def copy(self) -> GraphModule:
        """Return a copy of the graph, to be rewritten."""
        return copied(self.gm)

    def __str__(self) -> str:
        return self.program()

    def program(self, one_pass: str | None = None) -> str:
        """Return a runnable reproduction, with the graph as a comment.

        Args:
            one_pass: the name of the pass that it runs, ``None`` for ours.
        """
        lines = [f"# {line}" for line in _text(self.gm).splitlines() if line.strip()]
        for node in self.gm.graph.nodes:
            value = node.meta.get("val")
            if node.op in ("placeholder", "get_attr") and isinstance(value, torch.Tensor):
                where = f"offset {value.storage_offset()} of {value.untyped_storage().nbytes()} bytes"
                lines.append(
                    f"# {node.name}: {value.dtype} {tuple(value.shape)}, strides {value.stride()}, {where}"
                )
        name = "reinplace" if one_pass is None else "foreign"
        lines.append(f"from pytest_reinplace.passes import {name}, strategies, verify")
        again = f"strategies.replayed({self.choices}{', wild=True' if self.wild else ''})"
        lines.append(f"graph = {again}")
        lines.append(f"rewritten = {again}.gm")
        run = "reinplace(rewritten)" if one_pass is None else f'foreign.found("{one_pass}")(rewritten)'
        lines.append(f"print({run}, rewritten.graph)")
        lines.append("verify.assert_equivalent(graph.gm, rewritten, graph.inputs)")
        return "\n".join(lines)


def _text(gm: GraphModule, name: str = "") -> str:
    """Return a graph, and after it the subgraphs that it calls, as text."""
    parts = [f"{name} {gm.graph}".lstrip()]
    parts += [_text(child, f"{name}.{own}".lstrip(".")) for own, child in subgraphs(gm)]
    return "\n".join(parts)


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
    return RandomGraph(gm, maker.builder.inputs, draws.taken, draws.wild)


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
        shapes = _SHAPES + rare_view.SHAPES if draws.wild else _SHAPES
        shape = draws.of(shapes)
        for i in range(draws.between(1, 3)):
            self._input(shape if i == 0 or draws.chance(70) else draws.of(shapes))
        if draws.chance(50):
            self.index = self.builder.placeholder(torch.tensor([1, 0]))
        Steps(self.pool, self.index).some(9)
        outputs = self._epilogue()
        if not self.pool.candidates:
            return None
        gm = self.builder.finished(outputs)
        return gm if any(self._is_candidate(n) for n in gm.graph.nodes) else None

    def _is_candidate(self, node: Node) -> bool:
        is_clone = node.target is aten.clone.default
        return is_clone or bool(slots(node)) or higher_order.call_of(node) is not None

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
