"""Fake values of views without a run: the same as torch's, or left to torch."""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import Any

import pytest
import torch

from pytest_reinplace.passes import _torch
from pytest_reinplace.passes.fuzz.builder import GraphBuilder
from pytest_reinplace.passes.graph.emit import Emitter, is_dense
from pytest_reinplace.passes.graph.fake_view import FakeViews, fits

aten = torch.ops.aten
BOUNDS = (None, 0, 1, 2, 3, 5, 9, -1, -2, -7, 2**63 - 1)


@pytest.fixture
def mode() -> Any:
    return _torch.new_fake_mode()


def bases(mode: Any) -> list[torch.Tensor]:
    whole = torch.arange(60, dtype=torch.int16)
    made = [
        whole.view(3, 4, 5),
        whole.view(3, 4, 5).permute(2, 0, 1),
        whole[4:].as_strided((2, 3, 4), (20, 6, 1), 7),
        whole.view(3, 20)[1:, ::2].unsqueeze(1),
        torch.empty(3, 0, 2),
    ]
    return [mode.from_tensor(t) for t in made]


def facts(tensor: torch.Tensor) -> tuple[Any, ...]:
    layout = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    return (
        *layout,
        tensor.dtype,
        tensor.device,
        type(tensor),
        _torch.storage_key(tensor),
        tensor.requires_grad,
    )


def calls(base: torch.Tensor) -> list[tuple[Any, tuple[Any, ...]]]:
    found: list[tuple[Any, tuple[Any, ...]]] = [(aten.slice.Tensor, (base,)), (aten.slice.Tensor, (base, 1))]
    for dim, start, end, step in itertools.product((0, 1, -1), BOUNDS, BOUNDS, (1, 2, 3)):
        found.append((aten.slice.Tensor, (base, dim, start, end, step)))
    for dim, index in itertools.product((0, 1, 2, -1, -3), range(-6, 6)):
        found.append((aten.select.int, (base, dim, index)))
    found.extend((aten.unsqueeze.default, (base, dim)) for dim in range(-5, 5))
    found.append((aten.as_strided.default, (base, [2, 2], [3, 1])))
    found.append((aten.as_strided.default, (base, [2, 2], [3, 0], 5)))
    return found


def test_the_same_as_torch_wherever_it_answers(mode: Any) -> None:
    answered, views = 0, FakeViews(mode)
    for base in bases(mode):
        for target, args in calls(base):
            quick = views.value(target, args)
            try:
                expected = _torch.run_fake(mode, target, args, {})
            except (RuntimeError, IndexError):
                assert quick is None, (target, args)
                continue
            if quick is not None:
                answered += 1
                assert facts(quick) == facts(expected), (target, args)
    assert answered > 5000


def test_views_of_two_storages_are_two(mode: Any) -> None:
    views = FakeViews(mode)
    keys = set()
    for _ in range(50):  # a storage that is gone leaves its address to the next one
        base = mode.from_tensor(torch.zeros(4, 4))
        made = views.value(aten.select.int, (base, 0, 1))
        assert made is not None and _torch.storage_key(made) == _torch.storage_key(base)
        keys.add(_torch.storage_key(made))
    assert len(keys) == 50


def test_a_view_under_another_dtype_is_another_one(mode: Any) -> None:
    views, base = FakeViews(mode), mode.from_tensor(torch.zeros(4, 4))
    other = _torch.run_fake(mode, aten.view.dtype, (base, torch.int32), {})
    made = [views.value(aten.select.int, (t, 0, 1)) for t in (base, base, other)]
    assert made[0] is made[1] and [t.dtype for t in made if t is not None][1:] == [torch.float32, torch.int32]


def test_a_clone_of_a_dense_tensor_is_torchs(mode: Any) -> None:
    shapes = [
        ((3, 4), (4, 1)),
        ((3, 4), (1, 3)),
        ((1, 4), (99, 1)),
        ((4, 1, 2), (2, 7, 1)),
        ((2, 3, 4), (4, 8, 1)),
    ]
    for sizes, strides in (*shapes, ((), ()), ((1,), (5,))):
        base = mode.from_tensor(torch.zeros(200)[3:].as_strided(sizes, strides))
        assert is_dense(base)
        build = GraphBuilder()
        node = build.graph.placeholder("x")
        node.meta["val"] = base
        made = Emitter(build.graph).value(build.graph.call_function(aten.clone.default, (node,)))
        expected = _torch.run_fake(mode, aten.clone.default, (base,), {})
        assert facts(made)[:6] == facts(expected)[:6], (sizes, strides)
        assert made.untyped_storage().nbytes() == expected.untyped_storage().nbytes()
        assert _torch.storage_key(made) != _torch.storage_key(base)


def test_a_value_that_is_right_stays(mode: Any) -> None:
    base = mode.from_tensor(torch.zeros(4, 4))
    view = _torch.run_fake(mode, aten.select.int, (base, 0, 1), {})
    assert FakeViews(mode).value(aten.select.int, (base, 0, 1), view) is view
    elsewhere = _torch.run_fake(mode, aten.select.int, (mode.from_tensor(torch.zeros(4, 4)), 0, 1), {})
    for wrong in (base, elsewhere, torch.zeros(4), _torch.run_fake(mode, aten.select.int, (base, 0, 2), {})):
        made = FakeViews(mode).value(aten.select.int, (base, 0, 1), wrong)
        assert made is not None and made is not wrong and facts(made) == facts(view)
        assert _torch.storage_key(made) == _torch.storage_key(base)


def test_a_copy_has_the_value_of_the_result_that_it_stands_for(mode: Any) -> None:
    build = GraphBuilder()
    node = build.graph.placeholder("x")
    end = build.graph.output((node,))
    node.meta["val"] = base = mode.from_tensor(torch.zeros(4, 4))
    emitter, result = Emitter(build.graph), mode.from_tensor(torch.zeros(4, 4))
    made = [emitter.clone(end, node, result).meta["val"] for _ in range(2)]
    assert made[0] is result and made[1] is not result  # which belongs to the first copy
    others = [
        *(
            base,
            mode.from_tensor(torch.zeros(4, 4).t()),
            mode.from_tensor(torch.zeros(4, 4, dtype=torch.int32)),
        ),
        *(mode.from_tensor(torch.zeros(5, 4)[1:]), mode.from_tensor(torch.zeros(5, 4)[:4]), None),
    ]
    for other in others:
        made.append(emitter.clone(end, node, other).meta["val"])
        assert made[-1] is not other and facts(made[-1])[:6] == facts(made[1])[:6]
    assert len({_torch.storage_key(t) for t in (base, *made)}) == 1 + len(made)


def test_a_view_is_the_same_while_a_fake_mode_is_on(mode: Any) -> None:
    base = mode.from_tensor(torch.zeros(6, 4)[1:])
    expected = _torch.run_fake(mode, aten.select.int, (base, 0, 2), {})
    with mode:
        made = FakeViews(mode).value(aten.select.int, (base, 0, 2))
    assert made is not None and facts(made) == facts(expected)
    assert _torch.storage_key(made) == _torch.storage_key(base)


@pytest.mark.parametrize("is_on", [False, True])
def test_what_is_made_by_a_pattern_is_what_its_class_makes(mode: Any, is_on: bool) -> None:
    base = mode.from_tensor(torch.zeros(6, 4))
    expected = _torch.run_fake(mode, aten.select.int, (base, 0, 2), {})
    views = FakeViews(mode)
    with mode if is_on else contextlib.nullcontext():
        made = [views.value(aten.select.int, (base, 0, i)) for i in range(3)]
        alike = views.like(base)
    for view in made:
        assert view is not None and view.__dict__ == expected.__dict__
        assert torch._C._dispatch_keys(view) == torch._C._dispatch_keys(expected)
        assert view.device == expected.device and not view.requires_grad
    again = [_torch.run_fake(mode, aten.mul.Tensor, (view, 2), {}) for view in made]
    assert [facts(t)[:3] for t in again] == [facts(torch.zeros(4))[:3]] * 3
    assert alike.__dict__ == base.__dict__ and _torch.storage_key(alike) != _torch.storage_key(base)


def test_the_storage_keeps_its_size(mode: Any) -> None:
    base = mode.from_tensor(torch.arange(8))
    assert fits(base, ((4,), (2,), 1))
    assert not fits(base, ((4,), (2,), 2))
    assert fits(base, ((), (), 7)) and not fits(base, ((), (), 8))  # one element, no dimension
    assert not fits(base, ((2,), (-1,), 3)) and not fits(base, ((2,), (1,), -1))
    assert base.untyped_storage().nbytes() == 64


@pytest.mark.parametrize("what", ["conj", "neg", "grad", "real", "symbolic", "other mode", "view"])
def test_what_is_left_to_torch(mode: Any, what: str) -> None:
    base: Any = mode.from_tensor(torch.zeros(4, 4, dtype=torch.complex64))
    target = aten.select.int
    if what == "conj":
        base = base.conj()
    elif what == "neg":
        base = base.conj().imag
    elif what == "grad":
        base = mode.from_tensor(torch.zeros(4, 4, requires_grad=True))
    elif what == "real":
        base = torch.zeros(4, 4)
    elif what == "symbolic":
        mode = _torch.new_fake_mode()
        mode.shape_env = torch.fx.experimental.symbolic_shapes.ShapeEnv()
        mode.static_shapes = False
        base = mode.from_tensor(torch.zeros(4, 4))
    elif what == "other mode":
        mode = _torch.new_fake_mode()
    elif what == "view":
        target = aten.view.default
    args = (base, [16]) if what == "view" else (base, 0, 1)
    assert FakeViews(mode).value(target, args) is None


def test_it_is_quick(mode: Any) -> None:
    base = mode.from_tensor(torch.zeros(64, 8))
    seconds = {}
    for name, one in (
        ("torch", lambda i: _torch.run_fake(mode, aten.select.int, (base, 0, i % 64), {})),
        ("here", lambda i: FakeViews(mode).value(aten.select.int, (base, 0, i % 64))),
    ):
        for i in range(64):
            one(i)
        start = time.process_time()
        for i in range(500):
            one(i)
        seconds[name] = time.process_time() - start
    assert seconds["here"] < seconds["torch"]
