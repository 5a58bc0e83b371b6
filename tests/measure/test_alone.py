"""Who measures on a device, or chooses a kernel by timing, does so alone."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pytest_reinplace.base import _torch
from pytest_reinplace.measure import turns


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
    """Here or in the thread of a backward."""
    entered = threading.Event()

    def nested() -> None:
        with turns.exclusive("cpu"), turns.exclusive("cpu"):
            entered.set()

    with turns.exclusive("cpu"):
        threading.Thread(target=nested, daemon=True).start()
        assert entered.wait(30)


def closed_within(seconds: float) -> bool:
    """Wait until somebody holds the door."""
    import fcntl

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with open(turns._path("cpu", "door"), "a") as door:
            try:
                fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        time.sleep(0.01)
    return False


def test_who_runs_out_of_memory_runs_again_alone_and_nobody_overtakes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the locks are of this test alone
    said: list[str] = []
    ran_out, is_inside, may_leave = threading.Event(), threading.Event(), threading.Event()

    def beside() -> None:
        is_inside.set()
        assert may_leave.wait(30)
        said.append("beside")

    def large() -> None:
        assert is_inside.wait(30)
        if not ran_out.is_set():
            ran_out.set()
            raise torch.OutOfMemoryError("too large")
        said.append("large")

    def started(once: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=turns.run, args=("cpu", once), daemon=True)
        thread.start()
        return thread

    threads = [started(beside), started(large)]
    try:
        assert ran_out.wait(30)
        assert closed_within(30)  # large waits to be alone, however long it took to give memory back
        threads.append(started(lambda: said.append("late")))
        threads[-1].join(0.3)
        assert said == []
    finally:
        may_leave.set()
    for thread in threads:
        thread.join(30)
    assert said == ["beside", "large", "late"]


def test_no_other_process_measures_meanwhile() -> None:
    path = turns._path("cpu")
    other = [sys.executable, "-c", f"import filelock; filelock.FileLock({str(path)!r}).acquire(timeout=0.2)"]
    with turns.exclusive("cpu"):
        assert "Timeout" in subprocess.run(other, capture_output=True, text=True).stderr
    assert subprocess.run(other).returncode == 0


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
