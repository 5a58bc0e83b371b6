"""What the CPU makes for a GPU is made there, where nobody needs it on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_reinplace.passes import inductor_options, post_grad
from pytest_reinplace.passes.inductor import protect
from pytest_reinplace.passes.verify import copied

from ..trace import arange
from .devices import CPU, GPU, by_rule, traced

aten, prims = torch.ops.aten, torch.ops.prims
Tensor = torch.Tensor
needs_build = pytest.mark.skipif(torch.version.cuda is None, reason="this torch cannot trace that for CUDA")


def cpu_constants(gm: torch.fx.GraphModule) -> list[str]:
    nodes = [n for n in gm.graph.nodes if n.op == "call_function"]
    return [n.name for n in nodes if isinstance(v := n.meta.get("val"), Tensor) and v.device == CPU]


def sent(x: Tensor) -> Tensor:
    return x + torch.arange(3).to(GPU)


def computed(x: Tensor) -> Tensor:
    mask = (torch.arange(3)[None, :] <= torch.arange(2)[:, None]).to(GPU)
    return x.masked_fill(mask, 0.0)


def picked(x: Tensor) -> Tensor:
    return aten.index.Tensor(x, [torch.arange(2).flip(0)])  # as x[...], which torch without CUDA cannot trace


def picked_by_two(x: Tensor) -> Tensor:
    return aten.index.Tensor(x, [torch.arange(2), torch.arange(2) + 1])


def filled(x: Tensor) -> Tensor:
    return torch.where(x > 1, x, torch.full((), 2.5))


def parts(x: Tensor) -> Tensor:
    one, two = torch.split(torch.zeros(5) + 1, [2, 3])
    return x * two.to(GPU) + one.sum().to(GPU)


def default_device(x: Tensor) -> Tensor:
    return x + aten.full.default([3], 2.0).to(GPU)


def sized(x: Tensor) -> Tensor:
    made = torch.zeros(3)
    return x + made.to(GPU) + made.shape[0]


@pytest.mark.parametrize(
    "program", [sent, computed, picked, picked_by_two, filled, parts, default_device, sized]
)
def test_it_is_made_on_the_gpu(program: Callable[..., Any]) -> None:
    applied, gm = by_rule(program, arange(2, 3))
    assert applied.rewritten and not applied.refused and not cpu_constants(gm)
    assert prims.device_put.default not in {n.target for n in gm.graph.nodes}


def like(x: Tensor) -> Tensor:
    made = aten.full_like.default(torch.zeros(3), 2.0, device=CPU)
    return x + aten._to_copy.default(made, device=GPU)


def test_what_is_made_like_it_names_its_device_anew() -> None:
    applied, gm = by_rule(like, arange(2, 3), table={})
    assert len(applied.rewritten) == 1 and not cpu_constants(gm)


def stored(x: Tensor) -> Tensor:
    return x.index_put((torch.arange(2),), torch.ones(2, 3).to(GPU))


@needs_build
def test_it_may_name_what_is_stored() -> None:
    applied, gm = by_rule(stored, arange(2, 3))
    assert len(applied.rewritten) == 2 and not cpu_constants(gm)


def masked(x: Tensor) -> Tensor:
    return aten.index_put.default(x, [x > 1], torch.full((), 2.0))


@needs_build
def test_a_number_that_is_stored_by_a_mask_stays() -> None:
    applied, _ = by_rule(masked, arange(2, 3))
    assert [r.reason for r in applied.refused] == ["a number that is stored by a mask is read on the CPU"]


def returned(x: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.arange(3)
    return made, x + made.to(GPU)


def view_returned(x: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.arange(3)
    return made[1:] + 1, x + made.to(GPU)


def mixed(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.arange(3)
    return (made + y).sum(), x + made.to(GPU)


def together(x: Tensor) -> tuple[Tensor, Tensor]:
    """The second constant stays because of the first one."""
    first, second = torch.zeros(3), torch.ones(3)
    return first, x + (first + second).to(GPU)


def asked(x: Tensor) -> Tensor:
    made = torch.arange(3)
    aten._assert_async.default(made.sum() > 0)
    return x + made.to(GPU)


def drawn(x: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.zeros(3)
    return aten.bernoulli.p(made, 0.5), x + made.to(GPU)


def wide_number(x: Tensor) -> Tensor:
    """On a GPU it would be rounded before it is multiplied with."""
    return x.half() * torch.full((), 0.1, dtype=torch.float64)


def written(x: Tensor) -> Tensor:
    made = torch.zeros(3)
    aten.fill_.Scalar(made[1:], 1)
    return x + made.to(GPU)


@pytest.mark.parametrize(
    ("program", "reasons"),
    [
        (returned, {"it is returned"}),
        (view_returned, {"it is returned"}),
        (mixed, {"it is used on the CPU"}),
        (together, {"it is returned"}),
        (asked, {"it is used on the CPU"}),
        (wide_number, {"it is used on the CPU"}),
    ],
)
def test_it_stays_where_somebody_needs_it(program: Callable[..., Any], reasons: set[str]) -> None:
    args = (arange(2, 3), arange(3))[: program.__code__.co_argcount]
    applied, gm = by_rule(program, *args, devices=(GPU, CPU))
    assert not applied.rewritten and {r.reason for r in applied.refused} == reasons
    assert len(applied.refused) == (2 if program is together else 1)
    assert cpu_constants(gm)


def test_what_is_written_on_the_cpu_stays() -> None:
    applied, gm = by_rule(written, arange(2, 3))
    assert [r.reason for r in applied.refused] == ["it goes to what may need it on the CPU"]
    assert "full" in cpu_constants(gm)


def test_random_numbers_stay() -> None:
    gm = traced(drawn, [arange(2, 3)], [GPU])
    applied = post_grad.find("constructors").apply(gm)
    assert [r.reason for r in applied.refused] == ["it is used on the CPU"]
    gm = traced(lambda x: x + torch.rand(3).to(GPU), [arange(2, 3)], [GPU])
    assert post_grad.find("constructors").apply(gm) == post_grad.Applied("constructors")


def two_copies(x: Tensor) -> tuple[Tensor, ...]:
    made = torch.arange(3)
    one, two, three = (prims.device_put.default(made, GPU) for _ in range(3))
    return one, two, x + three


def test_two_copies_that_are_returned_are_two() -> None:
    applied, gm = by_rule(two_copies, arange(2, 3))
    assert len(applied.rewritten) == 1
    targets = [n.target for n in gm.graph.nodes]
    assert targets.count(aten.clone.default) == 1 and prims.device_put.default not in targets


def handed_on(x: Tensor) -> tuple[Tensor, ...]:
    """What is sent to where it is, is itself."""
    made = torch.arange(3)
    one, two = (prims.device_put.default(made, GPU) for _ in range(2))
    return prims.device_put.default(one, GPU), two, x + 1


def test_a_copy_that_is_handed_on_is_one_still() -> None:
    applied, gm = by_rule(handed_on, arange(2, 3), table={})
    assert len(applied.rewritten) == 1
    assert [n.target for n in gm.graph.nodes].count(aten.clone.default) == 1


def for_nobody(x: Tensor) -> tuple[Tensor, Tensor]:
    return x + 1, torch.arange(3) * 2


def test_what_no_gpu_reads_is_none_of_its_places() -> None:
    applied, _ = by_rule(for_nobody, arange(2, 3))
    assert not applied.rewritten and not applied.refused


one_gpu = pytest.mark.skipif(
    torch.cuda.device_count() == 1, reason="it needs a second GPU, or none to pretend two"
)


@pytest.mark.parametrize("devices", [(CPU, CPU), pytest.param((GPU, torch.device("cuda", 1)), marks=one_gpu)])
def test_there_is_one_gpu(devices: tuple[torch.device, torch.device]) -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        made = torch.arange(3)
        return x + made.to(x.device), y + made.to(y.device)

    gm = traced(program, [arange(2, 3), arange(2, 3)], devices)
    before = str(gm.graph)
    assert post_grad.find("constructors").apply(gm) == post_grad.Applied("constructors")
    assert str(gm.graph) == before


def test_it_comes_in_the_place_of_inductors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "move_constructors_to_cuda" in inductor_options(stage="post_grad")["disabled_passes"]
    assert "move_constructors_to_cuda" not in inductor_options()["disabled_passes"]
    gm = traced(sent, [arange(2, 3)], [GPU])
    after = copied(gm)
    protect.RulesPass()(after.graph)
    assert not cpu_constants(after)
    asked: list[str] = []
    monkeypatch.setattr(protect, "captures_graphs", lambda: True)
    monkeypatch.setattr(protect, "inductor_step", lambda name: lambda graph: asked.append(name))
    protect.RulesPass()(copied(gm).graph)
    assert asked == ["move_constructors_to_gpu"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    "program", [sent, computed, picked, picked_by_two, filled, parts, two_copies, masked, stored]
)
def test_on_a_gpu_it_is_right(program: Callable[..., Any]) -> None:
    x = arange(2, 3).to(GPU)
    torch.compiler.reset()
    compiled = torch.compile(program, fullgraph=True, options=inductor_options(stage="post_grad"))
    found, expected = compiled(x.clone()), program(x.clone())
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    assert all(torch.equal(one, other) and one.device == other.device for one, other in pairs)
    if isinstance(found, tuple):
        assert len({one.untyped_storage().data_ptr() for one in found}) == len(found)
