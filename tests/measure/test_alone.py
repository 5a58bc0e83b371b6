"""Who measures on a device, or chooses a kernel by timing, does so alone."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from pytest_reinplace.base import _torch
from pytest_reinplace.session.entry_test import _exclusive


@pytest.fixture
def tuner(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Inductor's tuner, whose timings only say that they were asked for."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    def benchmark_all_configs(said: list[str], *args: str) -> str:
        said.extend(args)
        return "the first"

    monkeypatch.setattr(CachingAutotuner, "benchmark_all_configs", benchmark_all_configs)
    return CachingAutotuner


def test_kernels_are_chosen_alone(tuner: Any) -> None:
    said: list[str] = []

    @contextlib.contextmanager
    def alone() -> Iterator[None]:
        time.sleep(0.02)
        said.append("alone")
        yield
        said.append("together")

    with _torch.tuning_in(alone) as waited:
        assert waited() == 0
        assert tuner.benchmark_all_configs(said, "timed") == "the first"
        assert waited() >= 0.02
    assert said == ["alone", "timed", "together"]
    tuner.benchmark_all_configs(said, "afterwards")
    assert said[3:] == ["afterwards"]


def test_a_tuner_of_another_torch_is_named(monkeypatch: pytest.MonkeyPatch, tuner: Any) -> None:
    monkeypatch.delattr(tuner, "benchmark_all_configs")
    with pytest.raises(_torch.SeamError, match=r"CachingAutotuner\.benchmark_all_configs"):
        _torch.tuning_in(contextlib.nullcontext).__enter__()


def test_a_kernel_may_be_chosen_while_its_program_is_measured() -> None:
    entered = threading.Event()

    def nested() -> None:
        with _exclusive("cpu"), _exclusive("cpu"):
            entered.set()

    threading.Thread(target=nested, daemon=True).start()
    assert entered.wait(30)


def test_nobody_else_measures_meanwhile() -> None:
    second = threading.Event()

    def other() -> None:
        with _exclusive("cpu"):
            second.set()

    with _exclusive("cpu"):
        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        assert not second.wait(0.3)
    assert second.wait(30)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_what_inductor_times_on_a_gpu_is_timed_alone() -> None:
    entered: list[int] = []

    @contextlib.contextmanager
    def alone() -> Iterator[None]:
        entered.append(1)
        yield

    torch.compiler.reset()
    with _torch.tuning_in(alone), _torch.inductor_patched({"force_disable_caches": True}):
        torch.compile(lambda x: x.sin() + 1.25)(torch.ones(4096, 4096, device="cuda"))
    assert entered
