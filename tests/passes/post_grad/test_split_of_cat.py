"""``split(cat([a, b]))``: ``a`` and ``b`` where nobody sees the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.library import custom_op

from pytest_reinplace import AssertGraph
from pytest_reinplace.passes.post_grad import find

from ..trace import arange, functional
from .stages import as_traced, by_inductor, by_rule
from .test_cat_of_split import targets

aten = torch.ops.aten
Tensor = torch.Tensor


def parts(a: Tensor, b: Tensor, dim: int = 1) -> tuple[Tensor, ...]:
    return torch.split(torch.cat([a, b], 1), [2, 3], dim)


def read(a: Tensor, b: Tensor) -> Tensor:
    x, y = parts(a, b)
    return x.sum() + y.sum()


def viewed(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    x, y = parts(a, b)
    return x.t()[0] + 1, y[:, 1:].reshape(-1) * 2


def negative(a: Tensor, b: Tensor) -> Tensor:
    x, y = parts(a, b, -1)
    return x.sum() + y.sum()


def stored(a: Tensor, b: Tensor) -> Tensor:
    x, y = parts(a.sin(), b)
    a.copy_(x * 2)
    return y + 1


@pytest.mark.parametrize("program", [read, viewed, negative, stored])
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_pieces_are_what_was_put_together(program: Callable[..., Any], dynamic: bool) -> None:
    args = arange(2, 2), arange(2, 3)
    applied, gm = by_rule("split_of_cat", program, *args, dynamic=dynamic)
    assert len(applied.rewritten) == 1 and aten.cat.default not in targets(gm)
    assert by_inductor(program, *args, dynamic=dynamic) == 0


@pytest.mark.parametrize(
    "dtypes", [(torch.half, torch.float), (torch.int32, torch.float), (torch.bool, torch.int64)]
)
def test_the_dtype_is_that_of_the_whole(
    dtypes: tuple[torch.dtype, torch.dtype], assert_graph: AssertGraph
) -> None:
    args = arange(2, 2).to(dtypes[0]), arange(2, 3).to(dtypes[1])
    _, gm = by_rule("split_of_cat", read, *args)
    name = f"{dtypes[1]}".removeprefix("torch.")
    convert = f"{{c}}: {name}[2, 2] = prims.convert_element_type.default({{a}}, {name})"
    assert_graph.matches(
        gm, f"{{a}}: ...\n{{b}}: ...\n{convert}\n{{_}} = aten.sum...({{c}}...)\n... aten.sum...({{b}}...)"
    )
    assert by_inductor(read, *args, ours=False) == 1 and by_inductor(read, *args) == 0


def returned(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return parts(a, b)


def view_returned(a: Tensor, b: Tensor) -> Tensor:
    return parts(a, b)[0].t()


@custom_op("reinplace_test::begin", mutates_args=())
def begin(x: Tensor) -> Tensor:
    """Return where a tensor begins in its storage."""
    return torch.tensor(x.storage_offset())


@begin.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty((), dtype=torch.int64)


def kernel(a: Tensor, b: Tensor) -> Tensor:
    x, y = parts(a, b)
    return begin(x) + begin(y)


def strided(a: Tensor, b: Tensor) -> Tensor:
    return parts(a, b)[0].as_strided((2, 2), (5, 1), 2) + 1


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (returned, "the whole is returned"),
        (view_returned, "the whole is returned"),
        (kernel, "reinplace_test::begin may ask where it lies"),
        (strided, "aten::as_strided asks where it lies"),
    ],
)
def test_what_shows_the_whole_stays_and_is_hidden(program: Callable[..., Any], reason: str) -> None:
    args = arange(2, 2), arange(2, 3)
    applied, gm = by_rule("split_of_cat", program, *args)
    assert [r.reason for r in applied.refused] == [reason] and aten.cat.default in targets(gm)
    assert by_inductor(program, *args) == 0


def test_all_pieces_returned_as_one_list_stay() -> None:
    gm, _ = functional(read, arange(2, 2), arange(2, 3))
    (split,) = gm.graph.find_nodes(op="call_function", target=aten.split_with_sizes.default)
    (output,) = gm.graph.find_nodes(op="output")
    output.args = ((split, *output.args[0]),)  # type: ignore[misc]
    applied = find("split_of_cat").apply(gm)
    assert [r.reason for r in applied.refused] == ["the whole is returned"]


def copied_back(a: Tensor, b: Tensor) -> Tensor:
    """The pieces go into the other operand: the second store comes behind the first."""
    x, y = torch.split_with_sizes(torch.cat([a, b], 1), [2, 2], 1)
    a.copy_(y)
    b.copy_(x)
    return a + 1


def test_what_is_written_while_the_pieces_are_in_use_stays() -> None:
    applied = as_traced("split_of_cat", copied_back, arange(2, 2), arange(2, 2) + 9)
    assert [r.reason for r in applied.refused] == ["a part is written, or seen, while the pieces are in use"]
    assert by_inductor(copied_back, arange(2, 2), arange(2, 2) + 9) == 0


def cut_elsewhere(a: Tensor, b: Tensor) -> Tensor:
    x, y = torch.split(torch.cat([a, b], 1), [3, 2], 1)
    return x.sum() + y.sum() * 2


def empty_operand(a: Tensor, b: Tensor) -> Tensor:
    """An empty operand of one dimension is skipped, whatever the others have."""
    x, y = torch.split_with_sizes(torch.cat([a[0, :0], b], 1), [0, 3], 1)
    return x.sum() + y.sum()


@pytest.mark.parametrize("program", [cut_elsewhere, empty_operand])
def test_what_is_cut_elsewhere_stays(program: Callable[..., Any]) -> None:
    applied = as_traced("split_of_cat", program, arange(2, 2), arange(2, 3))
    assert [r.reason for r in applied.refused] == ["the pieces are cut elsewhere"]
    assert by_inductor(program, arange(2, 2), arange(2, 3)) == 0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (arange(2, 2).t(), arange(2, 3)),
        (arange(2, 4)[:, ::2], arange(1, 3).expand(2, 3)),
        (arange(2, 2).t().int(), arange(2, 3)),
    ],
)
def test_a_part_that_is_laid_out_in_another_way_is_copied(a: Tensor, b: Tensor) -> None:
    applied, gm = by_rule("split_of_cat", read, a, b)
    assert len(applied.rewritten) == 1 and aten.clone.default in targets(gm)
    assert by_inductor(read, a, b) == 0


def one_returned(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    x, y = torch.split_with_sizes(torch.cat([a.sin(), b.cos()], 0), [2, 3])
    return x, y + 1


def one_returned_with_views(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    x, y = torch.split_with_sizes(torch.cat([a.sin(), b.cos()], 0), [2, 3])
    return x.t(), y + 1, x, x.t()[1:]


@pytest.mark.parametrize("program", [one_returned, one_returned_with_views])
def test_one_piece_is_returned_where_it_lies_as_its_part_does(program: Callable[..., Any]) -> None:
    applied, gm = by_rule("split_of_cat", program, arange(2, 2), arange(3, 2))
    assert len(applied.rewritten) == 1 and aten.cat.default not in targets(gm)
    assert by_inductor(program, arange(2, 2), arange(3, 2)) == 0


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: (x.t(), y[1:]),  # views of two pieces
        lambda x, y: (x[0], torch.split(torch.cat([x.sin(), y.sin()], 1), [2, 2], 1)[1].t()),  # with gaps
    ],
)
def test_views_of_two_pieces_and_of_one_with_gaps_stay(program: Callable[..., Any]) -> None:
    def whole(a: Tensor, b: Tensor) -> Any:
        return program(*torch.split_with_sizes(torch.cat([a.sin(), b.cos()], 0), [2, 2]))

    applied, gm = by_rule("split_of_cat", whole, arange(2, 2), arange(2, 2))
    assert "the whole is returned" in [r.reason for r in applied.refused] and aten.cat.default in targets(gm)
    assert by_inductor(whole, arange(2, 2), arange(2, 2)) == 0


def pictures(
    a: Tensor, b: Tensor, made: Callable[[Tensor], Tensor] = aten.neg.default
) -> tuple[Tensor, Tensor]:
    x, y = torch.split_with_sizes(torch.cat([a, b], 3), [2, 2], 3)
    return made(x), made(y)


def viewed_pictures(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return pictures(a, b, lambda x: x[:, 1:] * 2)


def channels(gaps: bool) -> Tensor:
    made = arange(2, 8, 2, 2).to(memory_format=torch.channels_last)
    return made[:, :4] if gaps else made[:, :4].clone()


def test_what_is_made_of_pieces_that_are_not_row_major_is_made_once_to_see() -> None:
    for gaps in (False, True):
        applied, gm = by_rule("split_of_cat", pictures, channels(gaps=False), channels(gaps))
        assert len(applied.rewritten) == 1 and targets(gm).count(aten.clone.default) == gaps
    for args in ((channels(False), channels(False).double()), (channels(False), arange(2, 4, 2, 2))):
        applied, _ = by_rule("split_of_cat", pictures, *args)
        assert [r.reason for r in applied.refused] in ([], ["a part is laid out in another way"])
    applied, _ = by_rule("split_of_cat", viewed_pictures, channels(False), channels(False))
    assert [r.reason for r in applied.refused] == ["a part is laid out in another way"]


def read_twice(a: Tensor, b: Tensor) -> Tensor:
    whole = torch.cat([a, b], 1)
    x, y = torch.split(whole, [2, 3], 1)
    return x.sum() + y.sum() + whole[0, 0]


def test_a_whole_with_other_readers_is_none_of_its_places() -> None:
    applied, _ = by_rule("split_of_cat", read_twice, arange(2, 2), arange(2, 3))
    assert not applied.rewritten and not applied.refused
