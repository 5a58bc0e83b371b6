"""What a user requires to be in place: a graph that copies it does not compile, and the error says why."""

from __future__ import annotations

import contextlib
import inspect
import logging
import pickle
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters
from torch._inductor import compile_fx
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import (
    NotReinplaced,
    Outcome,
    Reason,
    ReinplaceError,
    ReinplacePass,
    Report,
    UnknownName,
    observe,
)
from pytest_reinplace.passes import inductor_options as options
from pytest_reinplace.passes.inductor import stage
from pytest_reinplace.passes.inductor.schedule import attempts, check
from pytest_reinplace.passes.inductor.schedule._torch import AFTER_FUSION
from pytest_reinplace.passes.reinplacing import offered
from pytest_reinplace.passes.required import copied as copied_of

from ..trace import arange, functional, ops

LABEL = "reinplace_test::scale.x"


@pytest.fixture
def empty_cache() -> Iterator[None]:
    torch.compiler.reset()
    counters.clear()
    with fresh_inductor_cache():
        yield
    torch.compiler.reset()


def in_place(x: Tensor, y: Tensor) -> Tensor:
    product = x @ x
    ops.scale(product, y)
    return product


def copied(x: Tensor, y: Tensor) -> Tensor:
    """Inductor would lose what is written through another dtype into what it computes."""
    product = x @ x
    ops.scale(product.view(torch.int32), y.view(torch.int32))
    return product


def run(program: Any, require: Any, **more: Any) -> Tensor:
    fast = torch.compile(program, fullgraph=True, options={**options(require=require), **more})
    return fast(arange(4, 4), arange(4, 4))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("require", "error", "told"),
    [
        ("mylib::kv_update.cache", TypeError, r"to list names, as in .*, got 'mylib::kv_update.cache'"),
        (b"cache", TypeError, "got b'cache'"),
        (7, TypeError, "to list names, .*, got 7"),
        (["cache", 7], TypeError, "got 7 among them"),
        ([], ValueError, "got none"),
        (["cache", ""], ValueError, "got an empty name"),
    ],
)
def test_wrong_names_are_refused_at_once(require: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        options(require=require)


def test_names_are_a_part_of_what_caches_go_by() -> None:
    kept = [ReinplacePass(require=r) for r in (None, ["b", "a"], ("a", "b", "b"), ["a"])]
    uuids = [one.uuid() for one in kept]
    assert uuids[1] == uuids[2] and len(set(uuids)) == 3
    assert kept[1] == kept[2] and kept[1].require == ("a", "b")


def test_what_the_error_says() -> None:
    outcomes = [Outcome("l::o.x", "l::o", "x", f"o{i}", reinplaced=False, nbytes=8) for i in range(12)]
    error = NotReinplaced(outcomes, "planted")
    first, *more, last = str(error).splitlines()
    assert first == "12 required candidates not in place: l::o.x"
    assert more == ["  l::o.x: 8 B, planted"] * 10 and last == "  and 2 more"
    assert isinstance(error, RuntimeError) and isinstance(error, ReinplaceError)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.outcomes == error.outcomes == tuple(outcomes)


@pytest.mark.usefixtures("empty_cache")
def test_a_copy_that_may_not_be_does_not_compile() -> None:
    reports: list[Report] = []
    with observe(lambda report, _: reports.append(report)), pytest.raises(NotReinplaced) as raised:
        run(copied, ["other::op", "reinplace_test::*"])
    (outcome,) = reports[0].outcomes  # told before
    lines = str(raised.value).splitlines()
    assert lines[0] == f"1 required candidate not in place: {LABEL}"
    assert lines[1 : 1 + len(outcome.lines())] == [f"  {line}" for line in outcome.lines()]
    assert "test_required.py" in lines[1] and "64 B" in lines[1] and "hint: " in lines[2]
    assert raised.value.outcomes == (outcome,)


@pytest.mark.usefixtures("empty_cache")
def test_what_is_in_place_compiles_and_so_does_what_has_no_such_candidate() -> None:
    assert torch.equal(run(in_place, [LABEL]), in_place(arange(4, 4), arange(4, 4)))
    torch.compiler.reset()
    run(copied, ["other::op", "reinplace_test::scale.by"])


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("reinplace_test::scal.x", LABEL),
        ("reinplace_test::scale.xx", LABEL),
        ("reinplace_test::sc?le.xx*", LABEL),
        ("aten::index_putt.self", "aten::index_put.self"),
        ("aten::index_put.slf[3]", "aten::index_put.self"),
        ("reinplace_test.scale.x", LABEL),
    ],
)
@pytest.mark.usefixtures("empty_cache")
def test_a_name_of_no_operator_does_not_compile(name: str, near: str) -> None:
    with pytest.raises(UnknownName) as raised:
        run(in_place, [LABEL, name])
    first, last, *_ = str(raised.value).splitlines()  # and what torch says of verbosity
    assert first == f"require names {name!r}: no operator is called so: did you mean {near!r}?"
    assert last.startswith("  import what registers it before")
    assert list(raised.value.names) == [name]
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.names == raised.value.names and str(again) == f"{first}\n{last}"
    assert isinstance(again, RuntimeError) and isinstance(again, ReinplaceError)


@pytest.mark.usefixtures("empty_cache")
def test_torch_wraps_a_wrong_name_in_no_other_error_where_nothing_is_cached() -> None:
    with pytest.raises(UnknownName):
        run(in_place, ["reinplace_test::scal.x"], fx_graph_cache=False)


@pytest.mark.parametrize(
    "names",
    [
        ["aten::_foreach_add.self[3]", "aten::index_put.*", "*::index_put", "reinplace_test::scale.by"],
        ["reinplace_test::scal*", "a_kernel.out_ptr", "a_kernel", "cach", "*.xx"],
    ],
)
@pytest.mark.usefixtures("empty_cache")
def test_names_of_operators_and_of_kernels_that_the_graph_lacks_compile(
    names: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert torch.equal(run(in_place, names), in_place(arange(4, 4), arange(4, 4)))
    assert "require names" not in caplog.text


@pytest.mark.usefixtures("empty_cache")
def test_a_name_of_a_library_that_is_not_loaded_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    name = "reinplac_test::scale.x"
    run(in_place, [name])
    assert f"{name!r}: no operator of that library is loaded: did you mean {LABEL!r}?" in caplog.text


@pytest.mark.parametrize(("name", "near"), [("scal.x", LABEL), ("scale.x", LABEL), ("scale.xy", LABEL)])
@pytest.mark.usefixtures("empty_cache")
def test_a_name_without_a_library_that_nearly_is_one_of_the_graph_is_warned_of(
    name: str, near: str, caplog: pytest.LogCaptureFixture
) -> None:
    run(in_place, [name])
    told = f"require names {name!r}: no candidate of this graph is called so: did you mean {near!r}?"
    assert told in caplog.text


@pytest.mark.usefixtures("empty_cache")
def test_a_graph_without_a_candidate_checks_no_name() -> None:
    def reads(x: Tensor, y: Tensor) -> Tensor:
        return x @ y

    assert run(reads, ["reinplace_test::scal.x"]).shape == (4, 4)


@pytest.mark.usefixtures("empty_cache")
def test_a_graph_that_was_kept_without_it_does_not_do() -> None:
    for hits in (0, 1):
        torch.compiler.reset()
        counters.clear()
        run(copied, None)
        assert counters["aot_autograd"]["autograd_cache_hit"] == hits
    for _ in range(2):  # and what failed is not kept
        torch.compiler.reset()
        counters.clear()
        with pytest.raises(NotReinplaced):
            run(copied, [LABEL])
        assert not counters["aot_autograd"]["autograd_cache_hit"]
        assert not counters["inductor"]["fxgraph_cache_hit"]
    torch.compiler.reset()
    run(copied, None)


@pytest.mark.usefixtures("empty_cache")
def test_torch_wraps_it_in_no_other_error_where_nothing_is_cached() -> None:
    with pytest.raises(NotReinplaced):
        run(copied, [LABEL], fx_graph_cache=False)
    torch.compiler.reset()
    with pytest.raises(torch._inductor.exc.InductorError, match="planted"):  # the twin
        run(in_place, [LABEL], fx_graph_cache=False, **{AFTER_FUSION: stops(True, False)})


@pytest.mark.usefixtures("empty_cache")
def test_nor_where_the_first_compilation_was_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who watches Inductor puts back afterwards what was there before, and that wraps errors."""
    for name in ("_compile_fx_inner", "fx_codegen_and_compile"):
        monkeypatch.setattr(compile_fx, name, inspect.unwrap(getattr(compile_fx, name)))
    stock = compile_fx._compile_fx_inner
    with mock.patch.object(compile_fx, "_compile_fx_inner", side_effect=stock) as watched:
        run(in_place, [LABEL], fx_graph_cache=False)
    assert watched.called and compile_fx._compile_fx_inner is stock
    torch.compiler.reset()
    with pytest.raises(NotReinplaced):
        run(copied, [LABEL], fx_graph_cache=False)


def stops(*functional: bool) -> Any:
    def stop(nodes: list[Any]) -> list[Any]:
        if bool(attempts.why_functional()) in functional:
            raise ZeroDivisionError("planted")
        return nodes

    return type(options()[AFTER_FUSION])(stop)


def in_place_is_wrong(_: Any) -> str:
    return "" if attempts.why_functional() else "they race"


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.usefixtures("empty_cache")
def test_it_holds_for_a_backward(dynamic: bool) -> None:
    """With symbolic sizes torch compiles it twice, and ignores what is raised at first."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x.size(0)

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            return copied(grads[0], ctx.saved_tensors[0]) * grads[0].size(0)

    x = arange(4, 4).requires_grad_()
    fast = torch.compile(Scaled.apply, dynamic=dynamic, options=options(require=[LABEL]))
    result = fast(x)
    with pytest.raises(NotReinplaced, match=LABEL):
        result.sum().backward()


@pytest.mark.usefixtures("quick")
def test_what_is_compiled_again_without_writes_in_place_is_judged_as_it_is_at_last() -> None:
    with fresh_inductor_cache(), pytest.raises(NotReinplaced) as raised:
        run(in_place, [LABEL], **{AFTER_FUSION: stops(False)})
    first, second, *_ = str(raised.value).splitlines()
    assert first == f"1 required candidate not in place: {LABEL}"
    assert "64 B, Inductor failed at what was written in place: ZeroDivisionError('planted')" in second
    torch.compiler.reset()
    wrong = mock.patch.object(check, "problem", in_place_is_wrong)
    with fresh_inductor_cache(), wrong, pytest.raises(NotReinplaced, match=r"schedule is wrong: they race"):
        run(in_place, [LABEL])
    torch.compiler.reset()
    with fresh_inductor_cache(), wrong:
        run(in_place, ["other::op"])


def test_it_is_no_failure_of_inductor_that_writes_in_place_may_be_to_blame_for() -> None:
    calls: list[Any] = []

    def compile_one(gm: Any) -> None:
        calls.append(gm)
        attempts.now().reinplaced(writes=True)
        raise NotReinplaced([])

    gm, _ = functional(in_place, arange(4, 4), arange(4, 4))
    with pytest.raises(NotReinplaced):
        attempts.lowered(gm, compile_one)
    assert len(calls) == 1


def test_it_counts_where_a_graph_was_left_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*args: Any) -> Any:
        raise ZeroDivisionError("planted")

    reinplace, other = ReinplacePass(require=[LABEL]), ReinplacePass(require=["other::op"])
    deciding = mock.patch.object(stage, "reinplace_graph", fails)
    analysis = mock.patch.object(offered, "analyze_graph", fails)
    messages = []
    for analyses in (contextlib.nullcontext(), analysis):  # at last the names are all that is known
        first, second = (functional(in_place, arange(4, 4), arange(4, 4))[0].graph for _ in range(2))
        with deciding, analyses, caplog.at_level(logging.WARNING):
            with pytest.raises(NotReinplaced) as raised:
                reinplace(first)
            other(second)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert "64 B, reinplacing skipped, every wrapper clones: ZeroDivisionError: planted (" in messages[0]
    reinplace(functional(in_place, arange(4, 4), arange(4, 4))[0].graph)  # the twin


@pytest.mark.parametrize(
    ("step", "result", "why"),
    [
        (
            "why_unwatched",
            "planted",
            "reinplacing skipped, every wrapper clones: fusions are not checked, planted",
        ),
        (
            "_mutates_in_regions",
            True,
            "Inductor's own pass decides: a nested region writes its operands",
        ),
    ],
)
def test_it_counts_where_our_pass_does_not_decide(step: str, result: Any, why: str) -> None:
    gm, _ = functional(in_place, arange(4, 4), arange(4, 4))
    with mock.patch.object(stage, step, return_value=result), pytest.raises(NotReinplaced) as raised:
        ReinplacePass(require=[LABEL])(gm.graph)
    assert raised.value.why == why and why in str(raised.value)


def lists_and_stores(x: Tensor, y: Tensor, i: Tensor) -> Tensor:
    first, second = x @ x, y @ y
    ops.some([first, second], None)
    first = torch.index_put(first, (i,), second[0])
    return first + torch.slice_scatter(x @ y, x[:2], end=2)


def test_names_that_are_all_that_is_known_are_those_of_the_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    gm, _ = functional(lists_and_stores, arange(4, 4), arange(4, 4), torch.tensor([1]))
    known = {(o.label, o.nbytes, o.source) for o in offered.offered(gm.graph, stage.Options())}
    assert len(known) >= 4
    monkeypatch.setattr(offered, "analyze_graph", None)
    assert known <= {(o.label, o.nbytes, o.source) for o in offered.offered(gm.graph, stage.Options())}


def test_what_is_computed_on_the_way_is_not_copied_where_nothing_is_in_place() -> None:
    def scattered(x: Tensor, y: Tensor) -> Tensor:
        return torch.slice_scatter(x * 2, y[:2], end=2).sum(0)

    gm, _ = functional(scattered, arange(4, 4), arange(4, 4))
    found = offered.offered(gm.graph, stage.Options(target=stage.INDUCTOR))
    assert any(o.fused for o in found)
    assert copied_of(["aten::*"], Report(), found, "planted") == []


def summed(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    product = x * 2
    old = product.sum()
    ops.scale(product, y)
    return product, old


@pytest.mark.usefixtures("empty_cache")
def test_the_order_is_named_where_it_helps() -> None:
    def compiled(order: Any, program: Any) -> Any:
        return torch.compile(program, options=options(order=order, require=["*"]))(arange(4, 4), arange(4, 4))

    with pytest.raises(NotReinplaced, match=r'may: inductor_options\(order="free"\)'):
        compiled("keep", summed)
    torch.compiler.reset()
    compiled("free", summed)
    torch.compiler.reset()
    with pytest.raises(NotReinplaced) as raised:  # the twin: no order helps
        compiled("keep", copied)
    assert "order=" not in str(raised.value)


@pytest.mark.usefixtures("empty_cache")
def test_a_copy_that_is_meant_is_none_to_list_in_a_test() -> None:
    def both(x: Tensor, y: Tensor) -> Tensor:
        before = x.clone()
        ops.scale(x, y)
        return before @ x

    with pytest.raises(NotReinplaced, match="if that is meant, leave it out of require") as raised:
        run(both, ["*"])
    assert "assert_clones" not in str(raised.value)
    left = torch.compile(both, options=options(require=[LABEL]))(arange(4, 4), arange(4, 4))
    assert left.shape == (4, 4)


def test_a_hint_keeps_our_options_beside_others() -> None:
    told = Outcome("l::o.x", "l::o", "x", "o", reinplaced=False, nbytes=8, hint=Reason.STILL_READ.hint)
    hint = str(NotReinplaced([told]))
    assert hint.endswith("options=inductor_options() | {'reorder_for_locality': False}")
