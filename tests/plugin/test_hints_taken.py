"""What is said of copies by what becomes of them: saved for the backward, returned at a break, following."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_reinplace.capture.capture import Capture
from pytest_reinplace.passes import Outcome, Reason
from pytest_reinplace.passes.reason import LIST

from .followed import EIGHT, OUR_PASS, expected, meant, ones, ran, scale_

SAVED = f"{Reason.SAVED.hint}; for training, "


def weighted(cache, by, weight):
    scale_(cache, by)
    return cache * weight


def weighted_twice(cache, by, weight):
    """The cache is saved as it is and as a part: two outputs of one storage."""
    scale_(cache, by)
    return (cache * weight).sum() + (cache[:3] * weight[:3]).sum()


def weighted_before(cache, by, weight):
    """The backward needs the old value."""
    result = cache.clone() * weight
    scale_(cache, by)
    return result


def with_weight(requires_grad: bool = True) -> tuple[torch.Tensor, ...]:
    return (*EIGHT, torch.arange(8.0).requires_grad_(requires_grad))


def clones_of(program: Any, inputs: Any, under_test: str) -> tuple[Outcome, ...]:
    """Return what is cloned by a program that is not compared, for its backward is not run."""
    torch._dynamo.reset()
    with Capture(under_test, "graph", asker="marked test") as capture:
        torch.compile(program)(*(x.detach().clone().requires_grad_(x.requires_grad) for x in inputs))
    assert not any(graph.problem or graph.suspicious for graph in capture.graphs)
    return tuple(o for o in capture.report.outcomes if not o.reinplaced)


@pytest.mark.parametrize("program", [weighted, weighted_twice, weighted_before])
def test_what_is_saved_for_the_backward_is_no_copy_without_one(program: Any) -> None:
    found = clones_of(program, with_weight(), "exact")
    assert found and all(o.hint.startswith(SAVED) for o in found if LIST in o.hint)
    assert any(LIST in o.hint for o in found)
    for o in found:
        assert o.follows or sorted(expected(o.hint)) == sorted(other.label for other in found)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert clones_of(program, with_weight(), "exact") == ()
    assert ran(program, with_weight(requires_grad=False), "exact").clones == ()


def test_what_is_saved_is_called_so_and_not_by_a_name_of_torch() -> None:
    (clone,) = clones_of(weighted, with_weight(), "exact")
    assert (clone.label, clone.reason, clone.added) == ("output.saved", Reason.SAVED, True)
    assert clone.spares is not None and clone.spares.label == "hinttest::scale_.x"


def test_inductor_saves_the_tensor_itself_and_no_clone_is_told() -> None:
    assert clones_of(weighted, with_weight(), "inductor") == ()


def test_a_gradient_that_is_returned_is_not_saved() -> None:
    def both(cache, by, weight):
        scale_(cache, by)
        return cache.clone(), cache * weight

    found = clones_of(both, with_weight(), "exact")
    assert [o.reason for o in found if o.label == "aten::clone.self"] == [Reason.ESCAPES]
    assert all(o.reason is Reason.SAVED for o in found if o.label == "output.saved")


def broken(cache, by):
    old = cache.clone()
    torch._dynamo.graph_break()
    scale_(cache, by)
    return old + cache


@pytest.mark.parametrize("under_test", ["inductor", "exact"])
def test_a_copy_that_goes_to_the_code_after_a_graph_break_says_so(under_test: str) -> None:
    line = broken.__code__.co_firstlineno + 2
    place = f"tests/plugin/test_hints_taken.py:{line}"
    says = f"the graph ends at the graph break at {place}, and returns it to what follows: if that is meant, "
    found = ran(broken, EIGHT, under_test).clones
    assert [
        o.hint.partition(LIST)[0].replace(__file__, "tests/plugin/test_hints_taken.py") for o in found
    ] == [says]
    assert all(expected(o.hint) == ["aten::clone.self"] for o in found)


def test_a_function_that_ends_without_a_break_has_none() -> None:
    def step(cache, by):
        scale_(cache, by)
        return cache.clone()

    meant(step, EIGHT, f"{Reason.ESCAPES.hint}; if one is meant, ", "exact")


@torch.library.custom_op("takentest::two_", mutates_args={"k", "v"})
def two_(k: torch.Tensor, v: torch.Tensor, by: torch.Tensor) -> None:
    k.mul_(by)
    v.mul_(by)


def two_caches(k, v, by):
    old_k, old_v = k.clone(), v.clone()
    two_(k, v, by)
    return (old_k - k).abs().max() + (old_v - v).abs().max()


def three_inputs() -> tuple[torch.Tensor, ...]:
    return ones(8), ones(8) * 3, torch.arange(8.0)


def test_each_copy_back_follows_from_its_own_cause() -> None:
    found = ran(two_caches, three_inputs(), "inductor").clones
    k, v = (o for o in found if o.op == "takentest::two_")
    backs = [o for o in found if o.label == "aten::copy_.self"]
    assert [o.label for o in (k, v)] == ["takentest::two_.k", "takentest::two_.v"]
    assert [back.follows for back in backs] == [k.named, v.named]
    assert {back.reason for back in backs} == {Reason.FOLLOWS}


@pytest.mark.skipif(
    torch.__version__.startswith("2.15."), reason="the program's own clone stays there, and is read first"
)
def test_the_bytes_that_a_hint_compares_are_those_that_are_listed() -> None:
    found = ran(two_caches, three_inputs(), "inductor").clones
    for clone in (o for o in found if o.op == "takentest::two_"):
        (reader,) = clone.blockers
        assert reader.op == "aten::sub" and reader.source is not None
        mine = sum(o.nbytes for o in found if o is clone or o.follows == clone.named)
        assert mine == 64
        copied = f"our pass copies 32 B, for {reader.op}, instead of {mine} B here and for what follows"
        assert clone.hint == f"{copied}: {OUR_PASS}; that copy is still a clone"
    ours = ran(two_caches, three_inputs(), "exact").clones
    assert [o.nbytes for o in ours] == [32, 32]


def difference(cache, by):
    old = cache.clone()
    scale_(cache, by)
    return (old - cache).abs().max()


def test_a_whole_copy_beside_a_write_in_place_names_it() -> None:
    (clone,) = ran(difference, EIGHT, "exact").clones
    assert clone.label == "aten::clone.self"
    assert clone.copies is not None and clone.copies.label == "hinttest::scale_.x"
    assert f"it copies the whole tensor that {clone.copies} writes in place" in clone.lines()[1]


def row_kept(cache, by):
    old = cache[:1].clone()
    scale_(cache, by)
    return old + cache


def test_a_copy_of_a_part_is_none_of_the_whole() -> None:
    (clone,) = ran(row_kept, EIGHT, "exact").clones
    assert clone.copies is None


def test_a_list_says_that_it_is_without_the_other_clones() -> None:
    def mixed(x, row):
        y = x @ x
        y[0] = row  # Inductor misses it
        z = x.clone()
        scale_(z, x)
        return z @ x.T + y

    found = ran(mixed, (ones(4, 4), ones(4)), "inductor").clones
    (listed,) = {o.hint.partition(LIST)[2] for o in found if LIST in o.hint}
    assert len(found) == 2 and listed == "['hinttest::scale_.x']  # without the other clone"
