"""Programs with subgraphs for tests, and what holds their rewritten graphs against the functional ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._higher_order_ops.while_loop import while_loop
from torch.fx import Graph, GraphModule

from pytest_reinplace.passes import Report, analyze, reinplace
from pytest_reinplace.passes.graph.find_layouts import known
from pytest_reinplace.passes.verify import assert_equivalent

from .trace import functional

Tensor = torch.Tensor


def twin(gm: GraphModule) -> GraphModule:
    """Return a copy of a graph and of its subgraphs."""
    copied = GraphModule(gm, copy.deepcopy(gm.graph))
    for name, child in list(copied.named_children()):
        if isinstance(child, GraphModule):
            setattr(copied, name, twin(child))
    return copied


def is_hidden(graph: Graph, *, lowered: bool = False) -> bool:
    """Return whether all of a graph stays functional: offsets name bytes of what may begin elsewhere."""
    staying = known(graph, lowered=lowered).of(graph).staying
    return staying == {node.name for node in graph.nodes}


def text(gm: GraphModule) -> str:
    return "\n".join([str(gm.graph), *(text(c) for c in gm.children() if isinstance(c, GraphModule))])


def rewritten(
    fn: Callable[..., Any], *args: Any, also: Sequence[Any] = (), v2: bool = True, dynamic: bool = False
) -> tuple[Report, GraphModule]:
    """Rewrite the graph of ``fn`` and hold it against the functional one.

    Args:
        fn: the program.
        args: its arguments; the graph is run on them.
        also: values that a scalar tensor among the arguments is replaced by, for more runs.
        v2: which wrapper is used.
        dynamic: whether sizes are symbolic.
    """
    gm, inputs = functional(fn, *args, v2=v2, dynamic=dynamic)
    before, said = twin(gm), text(gm)
    analysis = analyze(gm)
    assert text(gm) == said, "analyze touched the graph"
    report = reinplace(gm)
    assert report.to_dict() == analysis.to_dict()
    check(before, gm, inputs, also)
    return report, gm


def check(before: GraphModule, after: GraphModule, inputs: Sequence[Any], also: Sequence[Any] = ()) -> None:
    """Hold a rewritten graph, and what dead code elimination leaves of it, against the functional one."""
    swept = twin(after)
    swept.graph.eliminate_dead_code()
    swept.recompile()
    for scalar in (None, *also):
        given = [
            torch.tensor(scalar) if scalar is not None and isinstance(i, Tensor) and i.dim() == 0 else i
            for i in inputs
        ]
        assert_equivalent(before, after, given)
        assert_equivalent(before, swept, given)


def shared(fn: Callable[..., Any], *args: Any) -> tuple[Report, GraphModule]:
    """Rewrite the graph of ``fn`` after all that it multiplies by 1 has become one tensor.

    torch traces no call whose operands are the same tensor; elimination of common values makes such.
    """
    gm, inputs = functional(fn, *args)
    first, *more = gm.graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor)
    for other in more:
        other.replace_all_uses_with(first)
        gm.graph.erase_node(other)
    gm.recompile()
    before = twin(gm)
    report = reinplace(gm)
    check(before, gm, inputs, also=[0, 1, 2])
    return report, gm


def loop(times: Tensor, body: Callable[..., Any], *carried: Tensor) -> tuple[Tensor, ...]:
    """Run ``body`` over ``(i, *carried)`` as often as ``times`` says."""

    def go_on(i: Tensor, *_: Tensor) -> Tensor:
        return i < times

    def step(i: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        return (i + 1, *body(i, *state))

    result: tuple[Tensor, ...] = while_loop(go_on, step, (torch.zeros((), dtype=torch.int64), *carried))
    return result[1:]


def put(i: Tensor, into: Tensor, value: Tensor) -> Tensor:
    """Return ``into`` with one row replaced."""
    into = into.clone()
    into.index_put_((i.reshape(1) % into.shape[0],), value)
    return into


def row(into: Tensor, value: Tensor) -> Tensor:
    """Return ``into`` with its first row replaced."""
    into = into.clone()
    into[0] = value
    return into


def write_or_keep(flag: Tensor, x: Tensor, v: Tensor) -> Tensor:
    def write(x: Tensor, v: Tensor) -> Tensor:
        return row(x, v)

    result: Tensor = torch.cond(flag, write, lambda x, v: x.clone(), (x, v))
    return result
