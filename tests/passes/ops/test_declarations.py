"""What users declare: each declaration fires, has a twin where it must not, and is refused when senseless."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule
from torch.library import custom_op

from pytest_reinplace.passes import (
    DeclarationError,
    GraphError,
    Reason,
    ReinplaceError,
    ReinplacePass,
    analyze,
    declarations,
    declare,
    reinplace,
)
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.ops.declarations import declaration_of
from pytest_reinplace.passes.verify import assert_equivalent, check_declaration

from ..trace import arange, functional

Tensor = torch.Tensor
aten = torch.ops.aten


@custom_op("registry_test::silu_and_mul", mutates_args=("result",))
def silu_and_mul(result: Tensor, x: Tensor) -> None:
    """Overwrite ``result`` whole, before ``x`` is read: what it held is never looked at."""
    result.fill_(-7)
    half = x.shape[-1] // 2
    result.copy_(x[..., :half] * x[..., half:])


@custom_op("registry_test::gate", mutates_args=("x",))
def gate(x: Tensor, by: Tensor) -> None:
    """Work element by element: each is read before it is written."""
    torch.add(x * 3, by, out=x)


@custom_op("registry_test::scramble", mutates_args=("x",))
def scramble(x: Tensor, by: Tensor) -> None:
    """Write each element, and only then read the other operand."""
    x.mul_(3)
    x.add_(by)


@custom_op("registry_test::shift", mutates_args=("x",))
def shift(x: Tensor, by: Tensor) -> None:
    """Read all before writing, but the neighbour's element."""
    x.copy_(x + by.roll(1, 0))


@custom_op("registry_test::sized", mutates_args=("x",))
def sized(x: Tensor, like: Tensor) -> None:
    """Ask only for the size of ``like``."""
    x.add_(like.numel())


@custom_op("registry_test::partly", mutates_args=("result",))
def partly(result: Tensor, x: Tensor) -> None:
    """Write all rows but the last one."""
    result[:-1] = x[:-1]


ops = torch.ops.registry_test
LIBRARY = torch.library.Library("registry_test", "FRAGMENT")
LIBRARY.define("hidden_view(Tensor x) -> Tensor")
LIBRARY.impl("hidden_view", lambda x: x[1:], "CompositeExplicitAutograd")
LIBRARY.define("hidden_write(Tensor x) -> Tensor")
LIBRARY.impl("hidden_write", lambda x: x.add_(1).sum(), "CompositeExplicitAutograd")
torch.library.register_fake("registry_test::hidden_write", lambda x: x.new_empty(()), lib=LIBRARY)


class Region(HigherOrderOperator):
    """A higher-order operator that the passes know nothing of."""

    def __init__(self) -> None:
        super().__init__("registry_test_region")

    def __call__(self, fn: Any, *operands: Tensor) -> Any:
        """Run ``fn`` on its operands."""
        return fn(*operands)


region = Region()


@pytest.fixture(autouse=True)
def nothing_stays_declared() -> Iterator[None]:
    before = declarations()
    yield
    assert declarations() == before


def reasons(gm: GraphModule, **options: Any) -> dict[str, Reason | None]:
    return {o.label: o.reason for o in analyze(gm, **options).outcomes}


# -- write-only ------------------------------------------------------------------------------------


def kept(x: Tensor, out: Tensor) -> Tensor:
    """The caller keeps ``out``, and the program does not write it back."""
    mine = torch.clone(out)
    silu_and_mul(mine, x)
    return mine


def both_read(x: Tensor) -> tuple[Tensor, Tensor]:
    old = torch.relu(x[:, :2])
    new = old.clone()
    silu_and_mul(new, x)
    return new, old * 2


@pytest.mark.parametrize("v2", [False, True])
def test_a_write_only_argument_costs_no_copy(v2: bool) -> None:
    plain, inputs = functional(both_read, arange(3, 4), v2=v2)
    specification, _ = functional(both_read, arange(3, 4), v2=v2)
    assert (
        analyze(plain, order="keep").clone_bytes > 0
    )  # the twin: undeclared, the old content has to be there
    with declare(ops.silu_and_mul.default, write_only=("result",)):
        report = reinplace(plain, order="keep")
    assert report.clone_bytes == 0
    assert aten.clone.default not in [n.target for n in plain.graph.nodes]
    assert_equivalent(specification, plain, inputs)


@pytest.mark.parametrize("v2", [False, True])
def test_what_is_not_in_place_is_an_empty_buffer(v2: bool) -> None:
    gm, inputs = functional_kept(v2)
    specification, _ = functional_kept(v2)
    with declare(ops.silu_and_mul.default, write_only=("result",)):
        report = reinplace(gm)
    made = [n for n in gm.graph.nodes if n.target is aten.empty_strided.default]
    assert len(made) == 1 and report.clone_bytes == 0 and aten.clone.default not in targets(gm)
    assert aten.copy_.default not in targets(gm)
    assert_equivalent(specification, gm, inputs)


def functional_kept(v2: bool) -> tuple[GraphModule, list[Any]]:
    return functional(kept, arange(3, 4), arange(3, 2), v2=v2)


def targets(gm: GraphModule) -> list[Any]:
    return [n.target for n in gm.graph.nodes]


def test_a_part_that_is_only_written_lets_the_rest_be_handed_on() -> None:
    """One view of a base is overwritten: what was there may be gone, the rest may not."""

    def program(x: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
        old = base * 2
        new = old.clone()
        silu_and_mul(new[1:], x)
        return new, old[0] + 1

    def twin(x: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
        old = base * 2
        new = old.clone()
        silu_and_mul(new[1:], x)
        return new, old[1:] + 1

    with declare(ops.silu_and_mul.default, write_only=("result",)):
        for fn, clones in ((program, 0), (twin, 1)):
            gm, inputs = functional(fn, arange(2, 4), arange(3, 2))
            specification, _ = functional(fn, arange(2, 4), arange(3, 2))
            assert len(reinplace(gm, order="keep").clones) == clones
            assert_equivalent(specification, gm, inputs)


def test_what_the_operator_also_reads_stays_read() -> None:
    """The written tensor is a part of the other operand: it goes into a buffer of its own."""

    def program(x: Tensor) -> Tensor:
        mine = x * 2
        silu_and_mul(mine[:, :2], mine)
        return mine

    gm, inputs = functional(program, arange(3, 4), v2=False)
    specification, _ = functional(program, arange(3, 4), v2=False)
    with declare(ops.silu_and_mul.default, write_only=("result",)):
        report = reinplace(gm)
    refused = [o for o in report.outcomes if o.label == "registry_test::silu_and_mul.result"]
    assert [o.reason for o in refused] == [Reason.SAME_NODE] and report.clone_bytes == 0
    assert aten.empty_strided.default in targets(gm)
    assert_equivalent(specification, gm, inputs)


def test_a_wrong_write_only_declaration_is_found() -> None:
    with declare(ops.silu_and_mul.default, write_only=("result",)):
        check_declaration(ops.silu_and_mul.default, torch.randn(3, 2), torch.randn(3, 4))
    with (
        declare(ops.partly.default, write_only=("result",)),
        pytest.raises(DeclarationError, match="'result', or leaves a part of it as it was"),
    ):
        check_declaration(ops.partly.default, torch.randn(3, 2), torch.randn(3, 2))
    with (
        declare(ops.scramble.default, write_only=("x",)),
        pytest.raises(DeclarationError, match="reads the old content of 'x'"),
    ):
        check_declaration(ops.scramble.default, torch.randn(3), torch.randn(3))


# -- elementwise -----------------------------------------------------------------------------------


def gated(x: Tensor) -> Tensor:
    mine = x * 2
    gate(mine, mine)
    return mine


def gated_shifted(x: Tensor) -> Tensor:
    mine = x * 2
    gate(mine[1:], mine[:-1])
    return mine


def gated_row(x: Tensor) -> Tensor:
    mine = x * 2
    gate(mine, mine[0])
    return mine


@pytest.mark.parametrize("v2", [False, True])
@pytest.mark.parametrize(("program", "free"), [(gated, True), (gated_shifted, False), (gated_row, False)])
def test_an_elementwise_operator_may_read_what_it_writes(program: Any, free: bool, v2: bool) -> None:
    gm, inputs = functional(program, arange(3, 3), v2=v2)
    specification, _ = functional(program, arange(3, 3), v2=v2)
    assert analyze(gm).clone_bytes > 0
    with declare(ops.gate.default, elementwise=True):
        report = reinplace(gm)
    assert (report.clone_bytes == 0) is free
    assert free or Reason.SAME_NODE in {o.reason for o in report.outcomes}
    assert_equivalent(specification, gm, inputs)


def test_another_dtype_of_the_same_elements_is_another_order_of_them() -> None:
    def program(x: Tensor) -> Tensor:
        mine = x * 2
        gate(mine, mine.view(torch.int32))
        return mine

    with declare(ops.gate.default, elementwise=True):
        gm, _ = functional(program, arange(3, 3))
        assert analyze(gm).clone_bytes > 0


def test_a_wrong_elementwise_declaration_is_found() -> None:
    with declare(ops.gate.default, elementwise=True):
        check_declaration(ops.gate.default, torch.randn(3, 2), torch.randn(3, 2))
    with (
        declare(ops.scramble.default, elementwise=True),
        pytest.raises(DeclarationError, match="writes an element before it has read it"),
    ):
        check_declaration(ops.scramble.default, torch.randn(4), torch.randn(4))
    with (
        declare(ops.shift.default, elementwise=True),
        pytest.raises(DeclarationError, match="reaches other elements"),
    ):
        check_declaration(ops.shift.default, torch.randn(4), torch.randn(4))


# -- reads, writes, aliases ------------------------------------------------------------------------


@pytest.mark.parametrize("v2", [False, True])
def test_an_argument_that_is_only_asked_for_its_size(v2: bool) -> None:
    def program(x: Tensor) -> Tensor:
        mine = x * 2
        sized(mine[1:], mine)
        return mine

    gm, inputs = functional(program, arange(3, 3), v2=v2)
    specification, _ = functional(program, arange(3, 3), v2=v2)
    assert analyze(gm).clone_bytes > 0
    with declare(ops.sized.default, reads=("x",)):
        assert reinplace(gm).clone_bytes == 0
        check_declaration(ops.sized.default, torch.randn(3), torch.randn(3))
    assert_equivalent(specification, gm, inputs)
    with declare(ops.gate.default, reads=("x",)), pytest.raises(DeclarationError, match="reads 'by'"):
        check_declaration(ops.gate.default, torch.randn(3), torch.randn(3))


def built(target: Any, *, first: Any = None, row: int = 1) -> tuple[GraphModule, list[Any]]:
    """A value goes through ``target``; then a part of it is overwritten, and the rest is returned."""
    builder = GraphBuilder()
    x = builder.placeholder(torch.arange(8.0).reshape(4, 2))
    mine = builder.call(aten.mul.Tensor, x, 2)
    seen = builder.call(target, *(() if first is None else (first,)), mine)
    source = builder.call(aten.full.default, [2], 9.0, dtype=torch.float32)
    new = builder.call(aten.select_scatter.default, mine, source, 0, row)
    used = builder.call(aten.neg.default, seen)
    return builder.finished([new, used]), builder.inputs


def test_a_view_that_the_schema_hides() -> None:
    """It is recognised by its fake value, and nothing is written there."""
    view = ops.hidden_view.default
    gm, _ = built(view, row=0)
    assert reasons(gm) == {"aten::select_scatter.self": Reason.UNKNOWN_OP}
    with pytest.raises(DeclarationError, match="and its schema does not say so"):
        check_declaration(view, torch.randn(3, 2))


def test_a_write_that_the_schema_hides() -> None:
    """It stays where it is, and nothing is in place in its bytes."""
    write = ops.hidden_write.default
    gm, _ = built(write)
    assert analyze(gm).clones == []  # what its schema says is believed
    with pytest.raises(DeclarationError, match="writes 'x'"):
        check_declaration(write, torch.randn(3))
    with declare(write, writes=("x",)):
        assert reasons(gm) == {"aten::select_scatter.self": Reason.UNKNOWN_OP}
        check_declaration(write, torch.randn(3))


def test_a_higher_order_operator() -> None:
    gm, inputs = built(region, first=aten.relu.default)
    assert reasons(gm) == {"aten::select_scatter.self": Reason.UNKNOWN_OP}
    (hint,) = [o.hint for o in analyze(gm).outcomes]
    assert hint == "declare what it reads and writes: pytest_reinplace.passes.declare"
    with declare(region, reads=(1,)):
        rewritten, _ = built(region, first=aten.relu.default)
        assert reinplace(rewritten).clones == []
        assert_equivalent(gm, rewritten, inputs)
    with declare(region, writes=(1,)):
        assert reasons(gm) == {"aten::select_scatter.self": Reason.UNKNOWN_OP}


def test_a_declared_operator_without_a_value_is_named() -> None:
    gm, _ = built(region, first=aten.relu.default)
    node = next(n for n in gm.graph.nodes if n.target is region)
    del node.meta["val"]
    with declare(region, reads=(1,)), pytest.raises(GraphError, match="registry_test_region") as caught:
        reinplace(gm)
    assert node.name in str(caught.value)


# -- the registration itself -----------------------------------------------------------------------


def test_it_can_be_undone_and_is_made_once() -> None:
    op = ops.gate.default
    registration = declare(op, elementwise=True)
    assert declaration_of(op) is registration.declaration
    with pytest.raises(DeclarationError, match="declared already"):
        declare(op, reads=("x",))
    registration.undo()
    registration.undo()
    assert declaration_of(op) is None
    with declare(op, reads=("by",)) as said:
        assert said in declarations() and said.reads == ("by",)
        registration.undo()  # an old one undoes nothing of a new one
        assert declaration_of(op) is said
    with pytest.raises(ZeroDivisionError), declare(op, elementwise=True):
        raise ZeroDivisionError
    assert declaration_of(op) is None


def test_a_changed_declaration_is_another_pass_for_the_caches() -> None:
    plain = ReinplacePass().uuid()
    with declare(ops.gate.default, elementwise=True):
        one = ReinplacePass().uuid()
    with declare(ops.gate.default, elementwise=True):
        again = ReinplacePass().uuid()
    with declare(ops.gate.default, elementwise=True, reads=("by",)):
        two = ReinplacePass().uuid()
    assert one == again and len({plain, one, two}) == 3
    assert ReinplacePass().uuid() == plain


@pytest.mark.parametrize(
    ("op", "said", "message"),
    [
        (ops.gate, {"elementwise": True}, "got OpOverloadPacket.*registry_test.gate.default"),
        (torch.add, {"elementwise": True}, "expected an operator .* got builtin_function"),
        ("mylib::f", {"elementwise": True}, "expected an operator .* got str"),
        (
            torch.ops.higher_order.auto_functionalized_v2,
            {"reads": (0,)},
            "declare the operator that it wraps",
        ),
        (ops.gate.default, {}, "expected something to declare"),
        (ops.gate.default, {"reads": ("z",)}, "reads= names 'z', .* it has x, by"),
        (ops.gate.default, {"reads": (0,)}, "reads= names 0"),
        (ops.gate.default, {"reads": "x"}, "expected a tuple of arguments for reads="),
        (ops.gate.default, {"reads": (1.5,)}, "expected names or positions"),
        (ops.gate.default, {"write_only": ("by",)}, "does not say it writes: mutable are x"),
        (ops.gate.default, {"write_only": ("x",), "reads": ("x",)}, "in reads= and in write_only="),
        (ops.gate.default, {"writes": ("by",)}, "correct the schema"),
        (ops.gate.default, {"elementwise": 1}, "expected True or False"),
        (region, {"elementwise": True}, "for operators with a schema"),
        (region, {"write_only": ("x",)}, "for operators with a schema"),
        (region, {"reads": (-1,)}, "positions from 0 on"),
    ],
)
def test_senseless_declarations_are_refused(op: Any, said: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declare(op, **said)


def test_the_check_needs_an_operator_that_runs() -> None:
    with pytest.raises(ReinplaceError, match="expected an operator"):
        check_declaration(torch.add, torch.ones(1))
    with pytest.raises(ReinplaceError, match="raised"):
        check_declaration(aten.mm.default, torch.ones(2), torch.ones(3))
