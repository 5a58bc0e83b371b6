"""Holding a compiled graph against its functional graph, on the inputs of one call."""

from __future__ import annotations

import collections
import dataclasses
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .. import _torch
from ..errors import ReinplaceError
from ..graph.copy import all_graphs, copied
from ..ops.source import where
from . import rounding
from .concrete import Sizes, is_symbolic, make_concrete
from .equivalence import Difference, Effects, Tolerance, difference, effects, first_node, in_common
from .execution import Manner, RunError, address, attributes
from .finding import Finding
from .laid_out import LaidOut
from .seeding import seeded, strangers, undrawn
from .unrepeatable import operator_name, refusal

_EXACT = Tolerance(any_nan=True)


# Torch's words for a write whose source is written on the way: what a wrong reinplacing leaves.
_OVERLAP = "refer to a single memory location"
Runner = Callable[[GraphModule], Manner]


def check(
    before: GraphModule,
    after: GraphModule,
    inputs: Sequence[Any],
    *,
    regenerated: frozenset[int] = frozenset(),
) -> Finding:
    """Check the contract on one call, and never guess.

    Both graphs run node by node on copies of ``inputs`` that share storage as the originals do. Numbers have
    to be equal bit by bit, unless the second graph computes them by other operators, converts them less, or
    lays them out in another way: then floating-point ones may be some roundings apart (``rounding.py``).
    Where operators are only left out 0.0 is not -0.0. Strides count where a value shares storage with another
    one; the strides of other outputs are what the compiler makes them. Nothing that the caller has is
    changed, random states included.

    Args:
        before: the functional graph.
        after: what the passes made of it.
        inputs: what the compiled graph is called with.
        regenerated: the outputs, by position, that the caller makes anew as views of something else; what
            they share storage with is of no account.

    Returns:
        ``"not-checked"`` with the reason where running the graphs would tell nothing or do something twice.
    """
    if reason := refusal(before, inputs) or refusal(after, inputs):
        return Finding.unchecked(reason)
    if names := strangers(before, after):
        return Finding.unchecked(f"the passes made other random nodes: {', '.join(names)}")
    try:
        with _torch.undisturbed(), undrawn(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the call that follows gives those of its operators
            return _Check(before, after, inputs, regenerated).finding()
    except torch.OutOfMemoryError:
        return Finding.unchecked("copies of its values do not fit into the memory of the device")
    except ReinplaceError as error:
        return Finding.unchecked(str(error))


class _Check:
    def __init__(
        self, before: GraphModule, after: GraphModule, inputs: Sequence[Any], regenerated: frozenset[int]
    ) -> None:
        self.inputs, self.regenerated = list(inputs), regenerated
        self.sizes = Sizes(before, inputs)
        self.before, self.after = self._runnable(before), self._runnable(after)

    def _runnable(self, gm: GraphModule) -> GraphModule:
        if not any(is_symbolic(node) for graph in all_graphs(gm) for node in graph.graph.nodes):
            if not any(_takes_element(node) for node in gm.graph.nodes):
                return gm
        copy = copied(gm)
        for graph in all_graphs(copy):
            make_concrete(graph, self.sizes)
        take_elements(copy)
        return copy

    def finding(self) -> Finding:
        try:
            expected = self._shown(effects(self.before, self.inputs, manner=self._plain(self.before)))
        except RunError as error:
            return Finding.unchecked(f"the functional graph does not run node by node: {_brief(error)}")
        try:
            found = self._difference(expected, self._plain)
        except RunError as error:
            if _OVERLAP in str(error.__cause__):
                return self._overlap(error)
            found = Difference("error", f"the rewritten graph does not run node by node: {_brief(error)}")
        if found is None:
            return Finding("same")
        return self._judged(expected, found)

    def _plain(self, gm: GraphModule) -> Manner:
        return Manner(seeded, imitate=True)

    def _laid_out(self, gm: GraphModule) -> Manner:
        layout = LaidOut(self.sizes)
        layout.given([*self.inputs, *attributes(gm).values()])
        return Manner(
            lambda node, evaluate: layout.around(node, lambda: seeded(node, evaluate)), imitate=True
        )

    def _difference(
        self, expected: Effects, manner: Runner, tolerance: Tolerance = _EXACT
    ) -> Difference | None:
        actual = self._shown(effects(self.after, self.inputs, manner=manner(self.after)))
        return difference(*in_common(*_alike(expected, actual)), tolerance)

    def _shown(self, run: Effects) -> Effects:
        """Put copies in the place of outputs whose storage the caller does not see."""
        outputs = [
            (name, value.clone() if i in self.regenerated and isinstance(value, torch.Tensor) else value)
            for i, (name, value) in enumerate(run.outputs)
        ]
        return Effects(outputs, run.inputs)

    def _judged(self, expected: Effects, found: Difference) -> Finding:
        """Judge a difference: it counts if it stays whatever a compiler is free to do."""
        why = ""
        for manner in (self._plain, self._laid_out):
            try:
                left = self._difference(expected, manner)
                if left is not None and (tolerance := self._tolerance(manner)) is not None:
                    left = self._difference(expected, manner, tolerance)
                    if (
                        left is not None
                        and left.kind != "alias"
                        and self._is_rounded_choice(expected, manner)
                    ):
                        why = "integers differ, and the passes changed the arithmetic that decides them"
            except RunError as error:
                if _OVERLAP in str(error.__cause__):
                    return self._overlap(error)
                why = f"the rewritten graph does not run node by node: {_brief(error)}"
                continue
            if left is None:
                return Finding("same", kind="rounding")
            found = left
        again = self._shown(effects(self.before, self.inputs, manner=self._plain(self.before)))
        if difference(*_alike(expected, again), _EXACT) is not None:
            return Finding.unchecked("the functional graph computes something else each time it runs")
        return Finding.unchecked(why) if why else self._different(found)

    def _tolerance(self, manner: Runner) -> Tolerance | None:
        """Return how far numbers may be apart; ``None`` where they have to be the same."""
        may_round = rounding.may_round(self.before, self.after)
        if may_round or self._layouts(self.before) != self._layouts(self.after, manner):
            signed = rounding.only_leaves_out(self.before, self.after)
            return Tolerance(scale=rounding.scale(self.before), any_nan=True, signed_zeros=signed)
        return None

    def _layouts(self, gm: GraphModule, manner: Runner | None = None) -> dict[str, Any]:
        """Return the strides of the values that two graphs both have, by name."""
        names = {n.name for n in self.before.graph.nodes} & {n.name for n in self.after.graph.nodes}
        found: dict[str, Any] = {}

        def note(node: Node, value: Any) -> None:
            if node.name in names and isinstance(value, torch.Tensor):
                found[node.name] = tuple(value.stride()), value.storage_offset()

        effects(gm, self.inputs, note, (manner or self._plain)(gm))
        return found

    def _is_rounded_choice(self, expected: Effects, manner: Runner) -> bool:
        """Return whether all that differs is integers, which other roundings may have decided."""
        if not rounding.may_round(self.before, self.after):
            return False
        signed = rounding.only_leaves_out(self.before, self.after)
        tolerance = Tolerance(scale=rounding.scale(self.before), any_nan=True, signed_zeros=signed)
        actual = self._shown(effects(self.after, self.inputs, manner=manner(self.after)))
        one, two = in_common(*_alike(expected, actual))
        return difference(_floats(one), _floats(two), tolerance) is None

    def _overlap(self, error: RunError) -> Finding:
        text = f"the rewritten graph writes into what it reads: {_brief(error)}"
        return self._named(Difference("error", text), error.node)

    def _different(self, found: Difference) -> Finding:
        first = None
        if found.kind != "alias":
            try:
                first = first_node(self.before, self.after, self.inputs, _EXACT, self._plain)
            except ReinplaceError:
                first = None
        return self._named(found, first[0] if first else self._maker(found))

    def _maker(self, found: Difference) -> Node | None:
        """Return the node of the functional graph that makes what differs, by the name in the text."""
        names = {node.name: node for node in self.before.graph.nodes}
        _, _, rest = found.text.partition("(")
        return names.get(rest.partition(")")[0])

    def _named(self, found: Difference, node: Node | None) -> Finding:
        if node is None:
            return Finding("different", found.text, found.kind)
        own = {n.name: n for n in self.before.graph.nodes}.get(node.name, node)
        what = f"{node.name} ({operator_name(own)})" if own.op == "call_function" else node.name
        near = (node, own, *reversed(node.all_input_nodes))  # a node that a pass made has no line of its own
        source = next((line for n in near if (line := where(n)) is not None), None)
        return Finding("different", found.text, found.kind, what, source)


def take_elements(gm: GraphModule) -> None:
    """Let users of an in-place foreach operator take the elements of the list that it wrote.

    Inductor's reinplacing leaves them on the operator's result, of which eager torch has none.
    """
    taken = [node for node in gm.graph.nodes if _takes_element(node)]
    for node in taken:
        call, position = node.args
        node.replace_all_uses_with(call.args[0][position])
        gm.graph.erase_node(node)
    if taken:
        gm.recompile()


def _takes_element(node: Node) -> bool:
    if node.target is not operator.getitem or not isinstance(node.args[0], Node):
        return False
    call = node.args[0]
    schema = getattr(call.target, "_schema", None) if call.op == "call_function" else None
    if schema is None or schema.returns or not call.args:
        return False
    return isinstance(call.args[0], list | tuple)


def _brief(error: RunError) -> str:
    cause = error.__cause__
    return f"{error.node.name}: {type(cause).__name__}: {' '.join(str(cause).split())[:300]}"


def _floats(run: Effects) -> Effects:
    """Return a run with zeros in the place of its integers."""

    def shown(value: Any) -> Any:
        is_whole = isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())
        return torch.zeros_like(value) if is_whole else value

    return Effects([(n, shown(v)) for n, v in run.outputs], run.inputs)


def _alike(expected: Effects, actual: Effects) -> tuple[Effects, Effects]:
    """Return both runs with outputs that share storage with nothing in one layout."""
    if len(expected.outputs) != len(actual.outputs):
        return expected, actual
    alone = _alone(expected) & _alone(actual)
    one, two = (
        dataclasses.replace(
            run,
            outputs=[
                (
                    name,
                    value.contiguous().clone() if i in alone and isinstance(value, torch.Tensor) else value,
                )
                for i, (name, value) in enumerate(run.outputs)
            ],
        )
        for run in (expected, actual)
    )
    return one, two


def _alone(run: Effects) -> set[int]:
    """Return the positions of the outputs whose storage nothing else has."""
    values = [value for _, value in (*run.outputs, *run.inputs)]
    keys = [address(v) if isinstance(v, torch.Tensor) and v.layout == torch.strided else 0 for v in values]
    count = collections.Counter(keys)
    return {i for i, key in enumerate(keys[: len(run.outputs)]) if key == 0 or count[key] == 1}
