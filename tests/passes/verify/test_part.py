"""Parts of a graph that run on their own, and a graph as a program."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from pytest_reinplace.passes.verify import (
    Parts,
    UnprintableError,
    assert_equivalent,
    graph_lines,
    input_lines,
    registering_files,
)

from ..trace import arange, functional, ops

Tensor = torch.Tensor
aten = torch.ops.aten


def program(x: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.sin(x) + 1
    z = y.t() @ y
    ops.scale(z, y)
    cache[:2] = x[:2]
    return z * 2, torch.relu(x - 3)


def targets(gm: GraphModule) -> list[Any]:
    return [node.target for node in gm.graph.nodes if node.op == "call_function"]


def made() -> tuple[GraphModule, list[Any]]:
    return functional(program, arange(4, 4), torch.zeros(4, 4))


def test_the_smallest_part_holds_what_fails_and_nothing_else() -> None:
    gm, inputs = made()
    tries: list[int] = []

    def fails(part: GraphModule, given: list[Any]) -> bool:
        tries.append(len(targets(part)))
        return aten.mm.default in targets(part) and any("functionalized" in str(t) for t in targets(part))

    found = Parts(gm, inputs).smallest(fails)
    assert found is not None
    part, given = found
    assert len(targets(part)) <= 4 and aten.sin.default not in targets(part)
    assert aten.relu.default not in targets(part) and len(tries) < 120
    assert all(isinstance(value, Tensor) for value in given)
    part(*given)
    assert all("stack_trace" in n.meta for n in part.graph.nodes if n.target is aten.mm.default)


def test_a_part_computes_what_the_graph_does() -> None:
    gm, inputs = made()
    parts = Parts(gm, inputs)
    part, given = parts.part(range(len(parts.items)))  # type: ignore[misc]
    assert targets(part) == [t for t in targets(gm) if t in targets(part)]
    before = [value.clone() for value in inputs]
    expected, came = gm(*inputs), part(*given)
    assert all(torch.equal(a, b) for a, b in zip(expected, came, strict=True))
    assert not torch.equal(before[1], inputs[1]) or not torch.equal(before[0], inputs[0])


def test_nothing_smaller_is_found_where_not_even_the_whole_fails() -> None:
    assert Parts(*made()).smallest(lambda part, given: False) is None


def test_many_numbers_become_simple_ones_where_they_do_not_matter() -> None:
    gm, inputs = functional(lambda x: x.relu() * 2, torch.randn(40, 40))

    def fails(part: GraphModule, given: list[Any]) -> bool:
        return bool(targets(part))

    _, given = Parts(gm, inputs).smallest(fails)  # type: ignore[misc]
    assert set(given[0].unique().tolist()) == set(range(1, 8))
    picky = Parts(gm, inputs).smallest(lambda part, given: bool((given[0] < 0).any()))
    assert picky is not None and (picky[1][0] < 0).any()


def built(gm: GraphModule, inputs: list[Any]) -> tuple[GraphModule, list[Any]]:
    """Return what the text of a graph and its inputs builds."""
    import base64
    import math
    import zlib

    names: dict[str, Any] = {
        "torch": torch,
        "operator": operator,
        "base64": base64,
        "zlib": zlib,
        "math": math,
    }
    exec("\n".join([*graph_lines(gm), *input_lines(inputs)]), names)
    return names["graph"](), names["inputs"]()


@pytest.mark.parametrize("size", [4, 40])
def test_the_text_builds_the_same(size: int) -> None:
    base = torch.randn(size, size)
    base[0, 0] = float("inf")
    gm, inputs = functional(program, base.t(), torch.zeros(size, size))
    again, values = built(gm, inputs)
    assert targets(again) == targets(gm)
    for one, two in zip(inputs, values, strict=True):
        assert torch.equal(one, two) and one.stride() == two.stride()
    assert_equivalent(gm, again, inputs)


def test_the_text_keeps_what_inputs_share() -> None:
    base = torch.arange(8)
    _, (one, two) = built(made()[0], [base[:6], base[2:]])
    assert one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr()
    assert two.storage_offset() == 2


def test_the_text_holds_subgraphs_and_constants() -> None:
    def branching(x: Tensor) -> Tensor:
        return torch.cond(
            x.sum() > 3, lambda y: y * 2, lambda y: y - float("inf"), (x[torch.tensor([1, 0])],)
        )

    gm, inputs = functional(branching, arange(2, 2))
    again, values = built(gm, inputs)
    assert_equivalent(gm, again, values)


def test_what_has_no_name_is_refused() -> None:
    gm = torch.fx.symbolic_trace(lambda x: x + 1)
    node = next(n for n in gm.graph.nodes if n.op == "call_function")
    node.target = lambda x, y: x
    with pytest.raises(UnprintableError, match="has no name in a program"):
        list(graph_lines(gm))
    with pytest.raises(UnprintableError, match="bytes is too large"):
        list(input_lines([torch.zeros(2_000_000)]))


def test_the_file_that_registers_an_operator_is_known() -> None:
    files = registering_files(made()[0])
    assert list(files) == ["reinplace_test::scale"]
    assert str(files["reinplace_test::scale"]).endswith("trace.py")
