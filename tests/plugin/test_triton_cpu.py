"""User Triton kernels on CPU tensors: what is captured, what is analysed, what is computed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd

pytest.importorskip("triton")

from pytest_reinplace.capture import _triton, triton_cpu

from . import kernels


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kernels.add_[(-(-x.numel() // 16),)](x, y, x.numel(), BLOCK=16)
    return x + 1


def tuned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    kernels.tuned_add_[lambda meta: (-(-meta["n"] // meta["BLOCK"]),)](x, y, x.numel())
    return x + 1


def center(x: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    kernels.center_[(x.shape[0],)](x, mean, x.shape[1], BLOCK=32)
    return x * mean[:, None]


def scaled(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    kernels.scale[(1,)](x, out, 1.5, x.numel(), BLOCK=16)
    return out


def without_bias(x: torch.Tensor) -> torch.Tensor:
    y = x * 1
    kernels.biased_[(1,)](x, None, x.numel(), BLOCK=64)
    return x + y


CASES: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...], list[str]]] = {
    "add": (add, ((40,), (40,)), ["x_ptr"]),
    "one element": (add, ((1,), (1,)), ["x_ptr"]),
    "tuned": (tuned, ((40,), (40,)), ["x_ptr"]),
    "center": (center, ((3, 20), (3,)), ["mean_ptr", "x_ptr"]),
    "scaled": (scaled, ((40,),), ["out_ptr"]),
    "without bias": (without_bias, ((40,),), ["x_ptr"]),
}


def expected(name: str, args: list[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return result and final inputs, by torch alone."""
    if name == "center":
        mean = args[0].mean(1)
        x = args[0] - mean[:, None]
        return x * mean[:, None], [x, mean]
    if name == "without bias":
        return args[0] * 3, [args[0] * 2]
    if name == "scaled":
        return args[0] * 1.5, [args[0]]
    x = args[0] + 2 * args[1]
    return x + 1, [x, args[1]]


without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="Triton works here by itself")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.compiler.reset()
    works = triton_cpu._triton.works()
    yield
    assert triton_cpu._triton.works() == works, "torch still believes that Triton works here"


@pytest.fixture
def written() -> tuple[list[str], Any]:
    """Return what the captured kernels were found to write, and a backend that records it."""
    names: list[str] = []

    def record(gm: torch.fx.GraphModule, _: Any) -> torch.fx.GraphModule:
        for node in gm.graph.nodes:
            names.extend(node.kwargs.get("tensors_to_clone", ()))
        return gm

    return names, aot_autograd(fw_compiler=record, keep_inference_input_mutations=True)


def check(name: str, call: Callable[..., torch.Tensor]) -> None:
    shapes = CASES[name][1]
    args = [torch.randn(shape) for shape in shapes]
    result, finals = expected(name, args)
    torch.testing.assert_close(call(*args), result)
    for came, final in zip(args, finals, strict=True):
        torch.testing.assert_close(came, final)


@pytest.mark.parametrize("name", CASES)
def test_eager_kernels_run(name: str) -> None:
    with triton_cpu.executing():
        check(name, CASES[name][0])


@pytest.mark.parametrize("name", CASES)
def test_captured_kernels_run_and_only_what_they_write_is_cloned(
    name: str, written: tuple[list[str], Any], caplog: pytest.LogCaptureFixture
) -> None:
    names, backend = written
    # Without a driver the analysis fails with nothing but a log line, and every tensor counts as written.
    with caplog.at_level(logging.WARNING), triton_cpu.working():
        check(name, torch.compile(CASES[name][0], backend=backend, fullgraph=True))
    assert sorted(names) == CASES[name][2]
    assert "assuming every input is mutated" not in caplog.text


def test_the_analysis_survives_an_interpreted_run(written: tuple[list[str], Any]) -> None:
    # Triton's interpreter leaves triton.language patched after a kernel that calls functions, tl.sum too.
    names, backend = written
    with triton_cpu.working():
        for name in ("add", "center"):
            check(name, CASES[name][0])
        for name in ("center", "add"):
            check(name, torch.compile(CASES[name][0], backend=backend, fullgraph=True))
    assert sorted(names) == ["mean_ptr", "x_ptr", "x_ptr"]


def test_the_language_is_as_before_after_a_run() -> None:
    import triton.language as tl

    before = {(owner, name): vars(owner)[name] for owner in (tl, tl.core, tl.tensor) for name in vars(owner)}
    with triton_cpu.executing():
        check("center", center)
    after = {(owner, name): vars(owner)[name] for owner in (tl, tl.core, tl.tensor) for name in vars(owner)}
    assert after == before


@pytest.mark.parametrize("name", ["tuned", "center", "one element", "without bias"])
def test_kernels_run_through_all_of_inductor(name: str) -> None:
    with triton_cpu.working():
        check(name, torch.compile(CASES[name][0], fullgraph=True))


def test_kernels_run_with_dynamic_shapes(written: tuple[list[str], Any]) -> None:
    names, backend = written
    compiled = torch.compile(add, backend=backend, fullgraph=True, dynamic=True)
    with triton_cpu.working():
        for n in (24, 40):
            x, y = torch.randn(n), torch.randn(n)
            wanted = x + 2 * y
            compiled(x, y)
            torch.testing.assert_close(x, wanted)
    assert names == ["x_ptr"], "compiled once"


@without_gpu
def test_without_the_driver_everything_counts_as_written(
    written: tuple[list[str], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The twin: the trap is real, so the assertions above can fail."""
    names, backend = written
    with caplog.at_level(logging.WARNING), _triton.believed(), triton_cpu.executing():
        check("add", torch.compile(add, backend=backend, fullgraph=True))
    assert sorted(names) == ["x_ptr", "y_ptr"]
    assert "assuming every input is mutated" in caplog.text


@without_gpu
def test_outside_the_context_torch_refuses_the_kernel() -> None:
    with pytest.raises(Exception, match=r"(?i)triton|driver"):
        torch.compile(add, backend="eager", fullgraph=True)(torch.randn(8), torch.randn(8))


@without_gpu
def test_contexts_nest_and_undo_themselves() -> None:
    from torch._dynamo.device_interface import CpuInterface
    from triton.backends import backends
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    interface = dict(vars(CpuInterface))  # torch 2.15 asks it whether Triton has a backend for the CPU
    before = dict(backends), driver._active, JITFunction.run, JITFunction.__call__
    with triton_cpu.working():
        inside = JITFunction.run
        with triton_cpu.working():
            assert _triton.works()
        assert _triton.works()
        assert JITFunction.run is inside
    assert (dict(backends), driver._active, JITFunction.run, JITFunction.__call__) == before
    assert dict(vars(CpuInterface)) == interface


def test_an_error_in_a_kernel_leaves_nothing_behind() -> None:
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    before = driver._active, JITFunction.run, JITFunction.__call__
    with pytest.raises(Exception, match=r"shape|broadcast"), triton_cpu.working():
        kernels.broken[(1,)](torch.zeros(8), BLOCK=4)
    assert (driver._active, JITFunction.run, JITFunction.__call__) == before


def test_with_a_gpu_only_kernels_on_cpu_tensors_are_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    launched: list[Any] = []
    monkeypatch.setattr(
        JITFunction, "run", lambda kernel, *args, **kwargs: launched.append(args[0].device.type)
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    before = driver._active
    assert not triton_cpu.needed()
    with triton_cpu.working():
        assert driver._active is before
        check("add", add)
        there = torch.empty(40, device="meta")
        kernels.add_[(3,)](there, there, 40, BLOCK=16)
    assert launched == ["meta"]


def test_a_missing_private_name_says_which() -> None:
    with pytest.raises(
        _triton.TritonSeamError, match=r"expected triton\.runtime\.jit\.Gone\.deeper, found none"
    ):
        _triton.private("triton.runtime.jit", "Gone.deeper")
