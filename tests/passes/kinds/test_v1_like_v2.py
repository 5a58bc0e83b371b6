"""The two wrappers of functionalization: the same program has the same outcome in ``v1`` and in ``v2``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from pytest_reinplace.passes import Reason, Report, analyze, reinplace
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.memory.geometry import Geometry
from pytest_reinplace.passes.memory.region import Region
from pytest_reinplace.passes.ops.wrapper import base_views
from pytest_reinplace.passes.verify import assert_equivalent, minimum_clone_bytes

from ..oracle.test_oracle_programs import Sides
from ..trace import arange, functional, ops
from ..traced_program import RandomProgram, random_program

Tensor = torch.Tensor
Key = tuple[str, bool, int, Reason | None]

aten = torch.ops.aten

_library = torch.library.Library("reinplace_like", "FRAGMENT")
_library.define("optional_items(Tensor(a!)?[] xs, Tensor(b!) y) -> ()")


def _add_to_each(xs: list[Tensor | None], y: Tensor) -> None:
    y.mul_(2)
    for x in xs:
        if x is not None:
            x.add_(y.sum())


_library.impl("optional_items", _add_to_each, "CompositeExplicitAutograd")
torch.library.register_fake("reinplace_like::optional_items", lambda xs, y: None, lib=_library)
optional_items = torch.ops.reinplace_like.optional_items


def of_operators(report: Report) -> list[Key]:
    """Return what became of each argument of a custom operator; only v1 has view scatters beside them."""
    found = (o for o in report.outcomes if not o.op.startswith(("aten::", "output")))
    return [(o.label, o.reinplaced, 0 if o.reinplaced else o.nbytes, o.reason) for o in found]


# -- programs as people write them ----------------------------------------------------------------------


def shared_pool(pool: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Write keys and values into two halves of one allocation, layer by layer."""
    for layer in range(2):
        keys, values = pool[layer][0], pool[layer][1]
        ops.update(keys, k)
        ops.update(values, v)
    return k + v


def views_first(x: Tensor, by: Tensor) -> None:
    for row in [x[0], x[1], x[2], x[3]]:
        ops.scale(row, by)


def views_made_when_needed(x: Tensor, by: Tensor) -> None:
    for i in range(4):
        ops.scale(x[i], by)


def rotary(qkv: Tensor, angles: Tensor) -> Tensor:
    qkv = qkv + 1
    q, k, v = qkv.split([8, 4, 4], dim=-1)
    ops.both(q, k)
    ops.scale(q, angles)
    return q.sum() + k.sum() + v.sum()


def lists(x: Tensor, y: Tensor) -> Tensor:
    rest = x + 1
    ops.some([x[0], rest, x[2]], y)
    ops.some([x[1]], None)
    return rest.sum()


def several(x: Tensor, y: Tensor) -> None:
    ops.both(x[:2], y[1:])
    ops.both(y[:1], x[2:])


def read_after_write(x: Tensor, by: Tensor) -> Tensor:
    before = x * 2
    ops.scale(x[1], by)
    return before.sum() + x.sum()


def old_value_read(x: Tensor, by: Tensor) -> Tensor:
    value = x + 1
    old = value.clone()
    ops.scale(value, by)
    ops.scale(value, old)
    return value + old


def returned(x: Tensor, by: Tensor) -> tuple[Tensor, Tensor]:
    value = x + 1
    ops.scale(value[1], by)
    new = ops.update(x, by)
    return value, new


def only_read(x: Tensor, by: Tensor) -> Tensor:
    """Write one row and read another one, and then the same one, through other views."""
    flat = x.view(-1)
    ops.scale(x[0], flat[4:8])
    ops.scale(x[0], flat[:4])
    return flat.sum()


def whole_is_read(x: Tensor) -> Tensor:
    """Write a row by the whole: the call needs the old bytes of the row that it writes."""
    ops.scale(x[1], x)
    return x.sum()


def a_part_is_read(x: Tensor) -> Tensor:
    """Write the whole by a row: there the row is the smaller copy."""
    ops.scale(x, x[1])
    return x.sum()


maybe_many, maybe = adversary.operator("maybe_many"), adversary.operator("maybe")


def optional_lists(x: Tensor, y: Tensor) -> Tensor:
    rest = x + 1
    maybe_many([rest[0], rest[2]], y)
    maybe_many(None, rest[1])
    optional_items([x[0], x[1]], rest[3])
    maybe(None, rest[1], None)
    return rest.sum()


def input_kept(x: Tensor, by: Tensor) -> Tensor:
    copy = x.clone()
    ops.scale(copy, by)
    ops.scale(x, by)
    return copy + by


PROGRAMS: list[tuple[Callable[..., Any], tuple[Tensor, ...]]] = [
    (shared_pool, (arange(2, 2, 4, 4), arange(4), arange(4) + 1)),
    (views_first, (arange(4, 4), arange(4))),
    (views_made_when_needed, (arange(4, 4), arange(4))),
    (rotary, (arange(4, 16), arange(4, 8))),
    (lists, (arange(4, 4), arange(3))),
    (several, (arange(4, 4), arange(4, 4))),
    (read_after_write, (arange(4, 4), arange(4))),
    (old_value_read, (arange(4, 4), arange(4, 4))),
    (returned, (arange(4, 4), arange(4))),
    (only_read, (arange(4, 4), arange(4))),
    (whole_is_read, (arange(4, 4),)),
    (a_part_is_read, (arange(4, 4),)),
    (optional_lists, (arange(4, 4).long(), arange(4).long())),
    (input_kept, (arange(4, 4), arange(4, 4))),
]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("program", "inputs"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_the_same_outcome(program: Callable[..., Any], inputs: tuple[Tensor, ...], dynamic: bool) -> None:
    found = {}
    for v2 in (False, True):
        specification, given = functional(program, *inputs, v2=v2, dynamic=dynamic)
        gm, _ = functional(program, *inputs, v2=v2, dynamic=dynamic)
        report = reinplace(gm)
        assert_equivalent(specification, gm, given)
        found[v2] = (of_operators(report), report.clone_bytes)
    assert found[False] == found[True]
    assert found[True][0]


# -- a small part of a large buffer ---------------------------------------------------------------------


def test_the_part_that_a_call_writes_is_copied_and_not_its_whole_base() -> None:
    gm, given = functional(whole_is_read, arange(4, 4))
    specification, _ = functional(whole_is_read, arange(4, 4))
    report = reinplace(gm)
    assert of_operators(report) == [("reinplace_test::scale.x", False, 16, Reason.SAME_NODE)]
    assert report.clone_bytes == 16 and "arg0_1" in str(report)
    written = [n for n in gm.graph.nodes if n.target is aten.copy_.default]
    assert [tuple(n.args[0].meta["val"].shape) for n in written] == [(4,)]
    assert_equivalent(specification, gm, given)


def with_a_copy(op: str, *, disjoint: bool) -> tuple[GraphModule, list[Any]]:
    """Write a row of a buffer by the whole buffer, or by the rest of it, with an operator."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(24).view(4, 6))
    whole = builder.call(aten.neg.default, x)
    row = builder.call(aten.slice.Tensor, whole, 0, 1, 2)
    other = builder.call(aten.slice.Tensor, whole, 0, 2, 4) if disjoint else whole
    name = "out" if op == "overwrite" else "x"
    *_, new = builder.v2(adversary.operator(op), {name: (whole, row)}, other=other)
    return builder.finished([builder.call(aten.mul.Tensor, new, 3)]), builder.inputs


@pytest.mark.parametrize(("op", "nbytes"), [("mix", 48), ("overwrite", 0)])
def test_what_is_overwritten_unread_is_not_even_copied(op: str, nbytes: int) -> None:
    gm, inputs = with_a_copy(op, disjoint=False)
    report = reinplace(gm)
    assert [(o.reinplaced, o.nbytes) for o in report.outcomes] == [(False, nbytes)]
    assert report.clone_bytes == nbytes == minimum_clone_bytes(with_a_copy(op, disjoint=False)[0], inputs)
    assert_equivalent(with_a_copy(op, disjoint=False)[0], gm, inputs)


def test_nothing_is_copied_where_the_call_reads_other_bytes() -> None:
    gm, inputs = with_a_copy("mix", disjoint=True)
    assert reinplace(gm).clones == []
    assert not gm.graph.find_nodes(op="call_function", target=aten.copy_.default)
    assert_equivalent(with_a_copy("mix", disjoint=True)[0], gm, inputs)


def overlapping(second: slice) -> tuple[GraphModule, list[Any]]:
    """Write two slices of a buffer in one call that reads the buffer."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(48).view(8, 6))
    whole = builder.call(aten.neg.default, x)
    views = [builder.call(aten.slice.Tensor, whole, 0, s.start, s.stop) for s in (slice(0, 2), second)]
    written = {"x": (whole, views[0]), "y": (whole, views[1])}
    *_, new = builder.v2(adversary.operator("pair"), written, other=whole)
    return builder.finished([new]), builder.inputs


@pytest.mark.parametrize(
    ("second", "sizes"), [(slice(4, 5), [96, 48]), (slice(1, 3), [384])], ids=["apart", "overlapping"]
)
def test_views_that_share_bytes_stay_together(second: slice, sizes: list[int]) -> None:
    """Copies of their own would not see each other's writes."""
    gm, inputs = overlapping(second)
    report = reinplace(gm)
    assert [o.nbytes for o in report.outcomes if not o.reinplaced and o.nbytes] == sizes
    assert_equivalent(overlapping(second)[0], gm, inputs)


# -- random programs ------------------------------------------------------------------------------------


def outcome(program: RandomProgram, v2: bool) -> tuple[GraphModule, Report]:
    found: list[tuple[GraphModule, Report]] = []
    with torch._inductor.config.patch(enable_auto_functionalized_v2=v2), torch.no_grad():
        sides = Sides(program, lambda gm: found.append((gm, analyze(gm))), dynamic=False)
        sides.expected(*program.inputs())
    return found[0]


def writes_bytes_twice(gm: GraphModule) -> bool:
    """Return whether a call writes the same bytes through two arguments.

    Wrapped by v1 each has a copy of its own, and neither sees what is written through the other one.
    """
    for node in gm.graph.find_nodes(op="call_function", target=torch.ops.higher_order.auto_functionalized_v2):
        views = [v for v in base_views(node) if v.base is not None]
        bases: Any = [Region.of(n.meta["val"]) for n in node.kwargs["_all_bases"]]
        regions = [(v.base, v.region(bases[v.base], 0)) for v in views]
        for i, (base, region) in enumerate(regions):
            if any(b == base and Geometry().overlap(r, region) is not False for b, r in regions[:i]):
                return True
    return False


def stands_elsewhere(report: Report) -> bool:
    """Return whether a copy is made at a view scatter or a functional copy, which v2 graphs do not have."""
    return any(
        not o.reinplaced and (o.op.endswith("_scatter") or o.op in ("aten::copy", "aten::copy_"))
        for o in report.outcomes
    )


def test_random_programs() -> None:
    compared = 0
    for seed in range(120):
        (_, first), (gm, second) = outcome(random_program(seed), False), outcome(random_program(seed), True)
        if writes_bytes_twice(gm) or stands_elsewhere(first) or stands_elsewhere(second):
            continue
        compared += 1
        assert first.clone_bytes == second.clone_bytes, f"seed {seed}\n{random_program(seed)}"
        assert of_operators(first) == of_operators(second), f"seed {seed}\n{random_program(seed)}"
    assert compared > 60
