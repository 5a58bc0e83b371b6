"""The operator on tensors that computes an element of a list computes what the operator over lists does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._inductor.lowering  # which operators over lists there are
from torch.fx import Graph, GraphModule

from pytest_reinplace.passes import _torch
from pytest_reinplace.passes.graph.emit import Emitter
from pytest_reinplace.passes.inductor.mend.element_op import element_op, emit_element
from pytest_reinplace.passes.ops.schema import schema_of

aten = torch.ops.aten

OPS = [
    getattr(packet, overload)
    for name in sorted(dir(torch.ops.aten))
    if name.startswith("_foreach_")
    for packet in [getattr(torch.ops.aten, name)]
    for overload in packet.overloads()
    if _torch.is_lowered_as_list(getattr(packet, overload)) and "out" not in overload
]
FUNCTIONAL = [op for op in OPS if not schema_of(op).mutable]

VALUES = {
    torch.float32: [[1.5, -2.0, 0.25], [3.0, 4.5, -1.0]],
    torch.int64: [[3, -2, 5], [7, 4, 1]],
    torch.bool: [[True, False, True], [False, True, True]],
}


def arguments(op: Any, dtype: torch.dtype, number: Any) -> list[Any]:
    """Return arguments for an operator over two elements; the second list holds whole floats."""
    first = [torch.tensor(v, dtype=dtype) for v in VALUES[dtype]]
    other = [torch.tensor([2.0, 3.0, 2.0]), torch.tensor([1.0, 2.0, 4.0])]
    taken: list[Any] = []
    for argument in op._schema.arguments:
        if argument.kwarg_only:
            continue
        kind = str(argument.type)
        if kind == "List[Tensor]":
            taken.append(other if taken else first)
        else:
            taken.append(torch.tensor(2.0) if kind == "Tensor" else number)
    return taken


@pytest.mark.parametrize("number", [2, 2.5], ids=str)
@pytest.mark.parametrize("dtype", list(VALUES), ids=str)
@pytest.mark.parametrize("op", FUNCTIONAL, ids=str)
def test_it_computes_the_same(op: Any, dtype: torch.dtype, number: Any) -> None:
    given = arguments(op, dtype, number)
    try:
        expected = op(*given)
    except (RuntimeError, NotImplementedError) as error:
        expected = error
    graph = Graph()
    operands = [
        [graph.placeholder(f"a{i}_{j}") for j in range(2)]
        if isinstance(v, list)
        else graph.placeholder(f"a{i}")
        if isinstance(v, torch.Tensor)
        else v
        for i, v in enumerate(given)
    ]
    whole = graph.call_function(op, tuple(operands))
    elements = [emit_element(Emitter(graph), whole, i) for i in range(2)]
    graph.erase_node(whole)
    graph.output(tuple(elements))
    flat = [t for v in given for t in (v if isinstance(v, list) else [v]) if isinstance(t, torch.Tensor)]
    module = GraphModule(torch.nn.Module(), graph)
    if isinstance(expected, Exception):
        with pytest.raises(type(expected)):
            module(*flat)
        return
    for one, two in zip(module(*flat), expected, strict=True):
        assert one.dtype == two.dtype
        torch.testing.assert_close(one, two, equal_nan=True, rtol=0, atol=0)


def test_every_list_that_inductor_makes_a_kernel_of_has_one() -> None:
    assert len(FUNCTIONAL) > 20
    assert [str(op) for op in OPS if element_op(op) is None] == []


def test_in_place_it_is_the_functional_one() -> None:
    assert element_op(aten._foreach_add_.List) is aten.add.Tensor


def test_named_numbers_keep_their_names() -> None:
    graph = Graph()
    x, y, z = (graph.placeholder(name) for name in "xyz")
    added = graph.call_function(aten._foreach_add.List, ([x], [y]), {"alpha": 3})
    scaled = graph.call_function(aten._foreach_addcmul.Scalar, ([x], [y], [z], 4))
    emitter = Emitter(graph)
    assert emit_element(emitter, added, 0).kwargs == {"alpha": 3}
    element = emit_element(emitter, scaled, 0)
    assert element.args == (x, y, z) and element.kwargs == {"value": 4}


def test_there_is_none_for_what_is_no_list() -> None:
    assert element_op(aten.add.Tensor) is None


def test_there_is_none_for_what_inductor_calls_a_kernel_for() -> None:
    assert element_op(aten._foreach_norm.Scalar) is None
