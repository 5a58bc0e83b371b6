"""Results that take their operand's place although their strides as written are others."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx import Node
from torch.library import custom_op

from pytest_reinplace.passes import Reason
from pytest_reinplace.passes.fuzz import adversary
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.reinplacing.facts.premises import Premises
from pytest_reinplace.passes.reinplacing.model.build import build
from pytest_reinplace.passes.verify import copied_bytes

from ..kinds.test_in_place_forms import ROWS, held, rewritten, targets

aten = torch.ops.aten


def columns() -> Tensor:
    """Every second column of a larger tensor: no result of an operator has these strides."""
    return torch.arange(48, dtype=torch.int64).view(6, 8)[:, ::2]


def plain() -> Tensor:
    return torch.arange(100, 124, dtype=torch.int64).view(6, 4)


def test_an_element_of_a_list_is_written_where_its_operand_lies() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        first, second = aten._foreach_add.Scalar([x, y], 3)
        x.copy_(first)
        return second.sum() + first[0].sum()

    report, gm = rewritten(program, columns(), plain())
    assert "aten::_foreach_add.self[0]" in report.reinplaced
    assert not any("copy_" in target for target in targets(gm))


def test_an_element_beside_one_that_is_laid_out_anew_is_as_it_was() -> None:
    """The other one repeats its only row, and its result has a buffer of its own."""

    def program(x: Tensor, row: Tensor, rows: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        first, second = aten._foreach_add.Scalar([x, row.expand(6, 4)], 3)
        x.copy_(first)
        return aten.index_put.default(second, [rows], y).sum(), first.sum()

    report, _ = rewritten(program, columns(), plain()[:1], ROWS, plain()[:2])
    assert report.reinplaced == ["aten::_foreach_add.self[0]", "aten::index_put.self"]


def test_a_returned_element_keeps_its_strides() -> None:
    def program(x: Tensor) -> Tensor:
        (first,) = aten._foreach_add.Scalar([x], 3)
        x.copy_(first)
        return first

    report, gm = rewritten(program, columns())
    assert copied_bytes(gm) == 6 * 4 * 8 and not report.reinplaced


def halves(x: Tensor) -> Tensor:
    first, second = x.chunk(2)
    return first.sum() - second.sum()


def negated(x: Tensor) -> Tensor:
    return (-x).sum()


def scattered(x: Tensor) -> Tensor:
    return aten.slice_scatter.default(x, x.new_zeros(1, 4), 0, 2, 3).sum()


def joined(x: Tensor) -> Tensor:
    return x.reshape(24) * 2


@pytest.mark.parametrize("use", [halves, negated, scattered])
def test_who_works_with_any_strides_does_not_hold_it_back(use: Callable[[Tensor], Tensor]) -> None:
    def program(x: Tensor, rows: Tensor, y: Tensor) -> Tensor:
        new = aten.index_put.default(x, [rows], y)
        old = use(new)
        x.copy_(new)
        return old

    report, _ = rewritten(program, columns(), ROWS, plain()[:2])
    assert "aten::index_put.self" in report.reinplaced


def test_who_goes_by_the_strides_does() -> None:
    def program(x: Tensor, rows: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        new = aten.index_put.default(x, [rows], y)
        x.copy_(new)
        return aten.as_strided.default(new, [4], [5], 1) * 1, new.sum()

    report, _ = rewritten(program, columns(), ROWS, plain()[:2])
    outcome = next(o for o in report.outcomes if o.label == "aten::index_put.self")
    assert not outcome.reinplaced and outcome.reason is Reason.LAYOUT


def test_a_clone_of_a_result_that_stays_as_it_is_costs_nothing() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        result = aten.gcd.default(x, y).clone()
        x.copy_(y)
        return result

    report, gm = rewritten(program, columns(), plain())
    assert "aten.clone.default" not in targets(gm) and "aten::clone.self" in report.reinplaced


def test_what_is_copied_onto_itself_is_dropped() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        x.copy_(x.view(6, 4))
        return y + 1

    _, gm = rewritten(program, plain(), plain())
    assert not any("copy_" in target for target in targets(gm))


def test_what_is_copied_elsewhere_is_not() -> None:
    def program(x: Tensor) -> Tensor:
        x[:3].copy_(x[3:])
        return x + 1

    _, gm = rewritten(program, plain())
    assert any("copy_" in target for target in targets(gm))


def put_into_columns(b: GraphBuilder) -> Node:
    """Return some columns of a computed tensor with one row replaced: laid out anew its rows lie apart."""
    whole = b.call(aten.mul.Tensor, b.placeholder(torch.arange(64).view(8, 8)), 2)
    into = b.call(aten.slice.Tensor, whole, 1, 0, 4)
    index = b.call(aten.full.default, [1], 1, dtype=torch.int64)
    value = b.call(aten.full.default, [1, 4], 5, dtype=torch.int64)
    return b.call(aten.index_put.default, into, [index], value)


def filled(b: GraphBuilder, into: Node) -> Node:
    """Return a tensor with one row filled: functional it is contiguous, whatever the operand is."""
    row = b.call(aten.full.default, [1, into.meta["val"].shape[1]], 2, dtype=torch.int64)
    return b.call(aten.scatter.value, into, 0, row, 7)


def transposed(b: GraphBuilder, node: Node) -> Node:
    return b.call(aten.t.default, node)


@pytest.mark.parametrize("row", [False, True])
def test_a_wrapper_hands_on_the_strides_that_it_was_given(row: bool) -> None:
    b = GraphBuilder()
    new = put_into_columns(b)
    given = b.call(aten.select.int, new, 0, 2) if row else new
    report, _ = held(b, [b.v1(adversary.operator("bump"), x=given)[-1]])
    assert ("aten::index_put.self" in report.reinplaced) is row


def test_so_does_its_clone() -> None:
    b = GraphBuilder()
    new = filled(b, transposed(b, b.call(aten.mul.Tensor, b.placeholder(plain()), 2)))
    result = b.v2(adversary.operator("fresh"), {"x": (new, new)}, other=new)[-1]
    report, _ = held(b, [result])
    assert not report.reinplaced


@pytest.mark.parametrize("absolute", [False, True])
def test_a_wrapper_that_names_bytes_by_offsets_finds_its_base_where_it_was(absolute: bool) -> None:
    b = GraphBuilder()
    row = b.call(aten.select.int, put_into_columns(b), 0, 2)
    part = b.call(aten.slice.Tensor, row, 0, 0, 4, 2) if absolute else b.call(aten.slice.Tensor, row, 0, 1, 3)
    report, _ = held(b, [b.v2(adversary.operator("bump"), {"x": (row, part)})[-1]])
    assert ("aten::index_put.self" in report.reinplaced) is not absolute


@pytest.mark.parametrize("keeps", [False, True])
def test_what_keeps_its_own_layout_is_not_laid_out_by_its_operand_either(keeps: bool) -> None:
    b = GraphBuilder()
    first = filled(b, transposed(b, b.placeholder(plain())))
    index = b.call(aten.full.default, [1], 1, dtype=torch.int64)
    value = b.call(aten.full.default, [1, 6], 5, dtype=torch.int64)
    second = b.call(aten.index_put.default, first, [index], value)
    gm = b.finished([b.call(aten.sum.default, second)])
    model = build(gm.graph, premises=Premises(own_layout=frozenset({second} if keeps else ())))
    assert (second in model.relaid) is (first in model.relaid) is not keeps


@pytest.mark.parametrize("typed", [False, True])
def test_who_goes_by_a_layout_that_was_not_taken_keeps_the_strides(typed: bool) -> None:
    """What is computed from a refused result is laid out as written, and is no copy in another layout.

    Its maker is a plain operator, or one whose own result could not live in its operand; the other two
    writes let no other layout look better.
    """
    b = GraphBuilder()
    x = b.placeholder(plain().to(torch.int32 if typed else torch.int64))
    like, y, z = b.placeholder(plain()), b.placeholder(plain().view(4, 6)), b.placeholder(plain())
    written = filled(b, transposed(b, z))
    own = filled(b, written)
    new = filled(b, transposed(b, x))
    made = b.call(aten.gcd.default, new, y) if typed else b.call(aten.neg.default, new)
    copied = b.call(aten.copy.default, transposed(b, like), made)
    b.call(aten.copy_.default, z, transposed(b, written))
    report, gm = held(b, [own, copied])
    assert "aten.copy.default" in targets(gm) and report.reinplaced == ["aten::scatter.self"]


def test_a_functional_result_of_an_operand_laid_out_anew_says_so() -> None:
    b = GraphBuilder()
    x, y = b.placeholder(plain()), b.placeholder(plain().view(4, 6))
    new = filled(b, transposed(b, b.call(aten.mul.Tensor, x, 2)))
    result = b.call(aten.gcd.default, new, y)
    seen = b.call(aten.sum.default, b.call(aten.neg.default, result))
    report, gm = held(b, [seen, b.call(aten.sum.default, new)])
    assert report.reinplaced == ["aten::scatter.self"]
    (node,) = gm.graph.find_nodes(op="call_function", target=aten.gcd.default)
    assert node.meta["val"].stride() == (1, 4)


def test_what_is_computed_from_a_result_laid_out_anew_is_so_too() -> None:
    def program(x: Tensor, rows: Tensor, y: Tensor) -> Tensor:
        new = aten.index_put.default(x, [rows], y)
        x.copy_(aten.clone.default(-new))
        return y.sum()

    report, gm = rewritten(program, plain().t().contiguous().t(), ROWS, plain()[:2])
    assert report.clone_bytes == 0 and copied_bytes(gm) == 6 * 4 * 8  # the copy_ of another tensor's values


def test_but_not_where_that_was_refused() -> None:
    def program(x: Tensor, rows: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        new = aten.index_put.default(x, [rows], y)
        again = aten.index_put.default(aten.clone.default(-new), [rows], y)
        return again.sum(), aten.as_strided.default(again, [4], [5], 1) * 1

    report, _ = rewritten(program, plain().t().contiguous().t(), ROWS, plain()[:2])
    refused = next(o for o in report.outcomes if not o.reinplaced)
    assert refused.reason is Reason.INPUT_KEPT


def test_a_clone_that_asks_for_dense_strides_is_one_where_its_operand_was_dense() -> None:
    def program(x: Tensor, rows: Tensor, y: Tensor) -> Tensor:
        new = aten.index_put.default(x, [rows], y)
        total = new.sum()
        again = aten.clone.default(new, memory_format=torch.contiguous_format)
        x.copy_(aten.index_put.default(again, [rows], y * 2))
        return total

    report, gm = rewritten(program, columns(), ROWS, plain()[:2])
    assert copied_bytes(gm) == 0 and "aten::clone.self" in report.reinplaced


@pytest.mark.parametrize("converts", [True, False])
def test_a_clone_for_the_sake_of_other_strides_stays(converts: bool) -> None:
    def program(x: Tensor) -> Tensor:
        turned = (x * 2).t()
        form = torch.contiguous_format if converts else torch.preserve_format
        return aten.clone.default(turned, memory_format=form).sum()

    report, gm = rewritten(program, plain())
    assert ("aten.clone.default" in targets(gm)) is converts and report.clones == []


def two_channels_last(b: GraphBuilder) -> list[Node]:
    """Return two results that are contiguous as written, and channels last where their operands lie."""
    found = []
    for _ in range(2):
        given = torch.arange(120).view(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
        index = b.placeholder(torch.zeros(1, 3, 4, 5, dtype=torch.int64))
        operand = b.call(aten.mul.Tensor, b.placeholder(given), 2)
        found.append(b.call(aten.scatter.value, operand, 0, index, 7))
    return found


@pytest.mark.parametrize("view", [False, True])
def test_two_results_are_not_laid_out_anew_where_only_both_change_a_third(view: bool) -> None:
    """One of two tensors joined may be channels last; with both of them so is the result."""
    b = GraphBuilder()
    joined = b.call(aten.cat.default, two_channels_last(b), 1)
    report, _ = held(b, [b.call(aten.view.default, joined, [-1]) if view else joined])
    assert report.reinplaced == ["aten::scatter.self"] and report.clone_bytes == 960


def test_they_are_where_each_changes_another() -> None:
    b = GraphBuilder()
    plain = b.placeholder(torch.arange(120).view(2, 3, 4, 5))
    joined = [b.call(aten.cat.default, [new, plain], 1) for new in two_channels_last(b)]
    report, _ = held(b, joined)
    assert report.reinplaced == ["aten::scatter.self"] * 2


def test_they_are_where_one_alone_lays_out_the_third() -> None:
    b = GraphBuilder()
    new = two_channels_last(b)
    seen = b.call(aten.sum.default, b.call(aten.gcd.default, *new))
    report, _ = held(b, [seen])
    assert "aten::scatter.self" in report.reinplaced and report.clone_bytes == 0


@pytest.mark.parametrize("turned", [True, False])
def test_a_view_that_only_fake_tensors_make_holds_it_back(turned: bool) -> None:
    """Elements that lie close together, but in another order, are no flat tensor."""
    given = torch.arange(12).view(3, 1, 4).permute(2, 1, 0) if turned else torch.arange(24).view(4, 1, 6)
    b = GraphBuilder()
    operand = b.call(aten.mul.Tensor, b.placeholder(given[..., :3]), 2)
    if not turned:
        operand = b.call(aten.slice.Tensor, b.call(aten.mul.Tensor, b.placeholder(given), 2), 2, 0, 3)
    new = b.call(aten.scatter.value, operand, 0, b.placeholder(torch.zeros(1, 1, 3, dtype=torch.int64)), 7)
    seen = b.call(aten.view.default, new, [-1] if turned else [2, 2, 3])
    report, _ = held(b, [b.call(aten.sum.default, seen)])
    assert ("aten::scatter.self" in report.reinplaced) is not turned


@pytest.mark.parametrize("use", ["roll", "index_fill", "index", "_unsafe_index", "index of many", "flip"])
def test_whose_strides_fake_tensors_do_not_tell_hold_it_back(use: str) -> None:
    b = GraphBuilder()
    given = torch.arange(12).view(2, 1, 2, 3) if use.endswith("index") else torch.arange(24).view(2, 2, 2, 3)
    operand = b.call(aten.mul.Tensor, b.placeholder(given.permute(0, 3, 1, 2)), 2)
    index = torch.zeros(1, *operand.meta["val"].shape[1:], dtype=torch.int64)
    new = b.call(aten.scatter.value, operand, 0, b.placeholder(index), 7)
    both = b.placeholder(torch.tensor([1, 0]))
    calls: dict[str, Callable[[], Node]] = {
        "roll": lambda: b.call(aten.roll.default, new, [1], [3]),
        "index_fill": lambda: b.call(aten.index_fill.int_Scalar, new, 1, both, 5),
        "index": lambda: b.call(aten.index.Tensor, new, [None, both]),
        "_unsafe_index": lambda: b.call(aten._unsafe_index.Tensor, new, [None, both]),
        "index of many": lambda: b.call(aten.index.Tensor, new, [None, both]),
        "flip": lambda: b.call(aten.flip.default, new, [3]),
    }
    report, _ = held(b, [b.call(aten.sum.default, calls[use]()), b.call(aten.sum.default, new)])
    assert ("aten::scatter.self" in report.reinplaced) is (use in ("flip", "index of many"))


def test_what_is_rolled_keeps_its_strides() -> None:
    b = GraphBuilder()
    operand = b.call(aten.mul.Tensor, b.placeholder(torch.arange(24).view(2, 2, 2, 3).permute(0, 3, 1, 2)), 2)
    new = b.call(aten.scatter.value, operand, 0, b.placeholder(torch.zeros(1, 3, 2, 2, dtype=torch.int64)), 7)
    held(b, [b.call(aten.roll.default, new, [1], [3])])


@pytest.mark.parametrize("way", ["wrapper", "several results", "one result"])
def test_who_does_not_hand_new_strides_on_holds_those_of_dimensions_of_one_back(way: str) -> None:
    b = GraphBuilder()
    index = b.placeholder(torch.zeros(1, 1, 3, 4, dtype=torch.int64))
    new = []
    for _ in range(2):
        operand = b.placeholder(torch.arange(24).view(2, 3, 4, 1).permute(0, 3, 1, 2))
        put = b.call(aten.scatter.value, b.call(aten.mul.Tensor, operand, 2), 0, index, 7)
        if way == "wrapper":
            new.append(b.v1(adversary.operator("bump"), x=put)[-1])
        elif way == "several results":
            new.append(b.call(operator.getitem, b.call(aten.sort.default, put), 0))
        else:
            new.append(b.call(aten.neg.default, put))
    report, _ = held(b, [b.call(aten.gcd.default, *new), b.call(aten.cat.default, new, 1)])
    assert report.reinplaced.count("aten::scatter.self") == (way == "one result")


@pytest.mark.parametrize("joined", [True, False])
def test_strides_of_dimensions_of_one_count_where_somebody_goes_by_them(joined: bool) -> None:
    """One channel is contiguous and channels last at once; what is joined of two such goes by the strides."""
    b = GraphBuilder()
    new = []
    for _ in range(2):
        operand = b.placeholder(torch.arange(24).view(2, 3, 4, 1).permute(0, 3, 1, 2))
        index = b.placeholder(torch.zeros(1, 1, 3, 4, dtype=torch.int64))
        new.append(b.call(aten.scatter.value, b.call(aten.mul.Tensor, operand, 2), 0, index, 7))
    result = b.call(aten.cat.default, new, 1) if joined else b.call(aten.gcd.default, *new)
    report, _ = held(b, [result])
    assert len([o for o in report.outcomes if o.label == "aten::scatter.self" and o.reinplaced]) == 2 - joined


@pytest.mark.parametrize("named", [0, 1])
def test_only_the_element_that_is_named_by_offsets_has_to_begin_where_it_does(named: int) -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        both = aten._foreach_add.Scalar([y, x], 3)
        x.copy_(both[1])
        return aten.as_strided.default(both[named], [1], [1], 0) * 2

    columns = torch.arange(48, dtype=torch.int64).view(6, 8)[:, 1::2]
    report, _ = rewritten(program, columns, plain())
    assert ("aten::_foreach_add.self[1]" in report.reinplaced) is (named == 0)


@pytest.mark.parametrize("taken", [0, 1])
def test_strides_of_an_element_count_whether_anybody_takes_it_or_not(taken: int) -> None:
    b = GraphBuilder()
    new = filled(b, transposed(b, b.call(aten.mul.Tensor, b.placeholder(plain()), 2)))
    both = b.call(aten._foreach_add.Scalar, [new, b.placeholder(plain())], 3)
    report, _ = held(b, [b.item(both, taken), b.call(aten.sum.default, new)])
    assert "aten::scatter.self" not in report.reinplaced


@pytest.mark.parametrize("row", [True, False])
def test_a_collective_goes_by_the_strides_that_it_is_given(row: bool) -> None:
    b = GraphBuilder()
    new = put_into_columns(b)
    given = b.call(aten.select.int, new, 0, 2) if row else new
    started = b.call(torch.ops._c10d_functional.all_gather_into_tensor.default, given, 2, "reinplace")
    report, _ = held(b, [b.call(torch.ops._c10d_functional.wait_tensor.default, started)])
    assert ("aten::index_put.self" in report.reinplaced) is row


@custom_op("reinplace_relayout::told", mutates_args=())
def told(x: Tensor) -> Tensor:
    return x.new_tensor([*x.stride(), int(x.sum())])


@told.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty([x.dim() + 1])


@pytest.mark.parametrize(("use", "in_place"), [("row", True), ("element", False), ("all", False)])
def test_so_does_an_operator_of_a_user_those_of_dimensions_of_one_too(use: str, in_place: bool) -> None:
    b = GraphBuilder()
    new = put_into_columns(b)
    given = new if use == "all" else b.call(aten.select.int, new, 0, 2)
    if use == "element":
        given = b.call(aten.slice.Tensor, b.call(aten.select.int, new, 1, 2), 0, 3, 4)
    report, _ = held(b, [b.call(torch.ops.reinplace_relayout.told.default, given)])
    assert ("aten::index_put.self" in report.reinplaced) is in_place


@pytest.mark.parametrize("is_viewed", [True, False])
def test_a_copy_of_one_element_keeps_strides_that_a_view_of_another_dtype_refuses(is_viewed: bool) -> None:
    """Its fake tensor is contiguous: it does not tell."""

    def program(x: Tensor, rows: Tensor) -> Tensor:
        new = aten.index_put.default(x, [rows], x[1:3] * 2)
        x.copy_(new)
        first = aten.clone.default(new[:1].view(1))
        return (first.view(torch.int32) if is_viewed else first) + 1

    report, _ = rewritten(program, columns()[:, 0], ROWS)
    assert ("aten::index_put.self" in report.reinplaced) is not is_viewed


@pytest.mark.parametrize("use", ["larger items", "stride", "elements"])
def test_strides_of_dimensions_of_one_of_a_copy_are_asked_for(use: str) -> None:
    """A row that is turned keeps the distance of rows, which its fake tensor does not tell."""
    b = GraphBuilder()
    x = b.placeholder(torch.arange(12, dtype=torch.int32).view(4, 3)[:, :2])
    rows, values = (
        b.placeholder(torch.tensor([1, 3])),
        b.placeholder(torch.full((2, 2), 7, dtype=torch.int32)),
    )
    new = b.call(aten.index_put.default, x, [rows], values)
    b.call(aten.copy_.default, x, new)
    row = b.call(aten.flip.default, b.call(aten.slice.Tensor, new, 0, 0, 1), [0])
    if use == "larger items":
        seen = b.call(aten.neg.default, b.call(aten.view.dtype, row, torch.int64))
    elif use == "stride":
        seen = b.call(aten.add.Tensor, row, b.call(aten.sym_stride.int, row, 0))
    else:
        seen = b.call(aten.neg.default, row)
    report, _ = held(b, [b.call(aten.neg.default, seen), b.call(aten.sum.default, new)])
    assert ("aten::index_put.self" in report.reinplaced) is (use == "elements"), report


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32])
def test_a_new_dimension_of_one_has_the_strides_around_it(dtype: torch.dtype) -> None:
    """Fake tensors give it those of a contiguous tensor, and a view of smaller items would not be refused."""
    b = GraphBuilder()
    source = b.call(aten.full.default, [4], 7, dtype=torch.int64)
    put = b.call(aten.slice_scatter.default, b.placeholder(torch.arange(16)[::2]), source, 0, 0, 8, 2)
    first = b.call(aten.slice.Tensor, b.call(aten.clone.default, put), 0, 0, 1)
    one = b.call(aten.view.dtype, b.call(aten.view.default, first, [1, 1]), dtype)
    report, _ = held(b, [b.v1(adversary.operator("bump"), x=one)[-1]])
    assert ("aten::clone.self" in report.reinplaced) is (dtype is torch.float64)
