"""Each defect on the torch at hand, without its defence: ``pytest -s tests/passes/inductor/defects_off.py``.

A line for each says what its program is then: right, wrong, large (it holds more), or that it fails. With all
defences it must be right. What the register says of this version of torch must be what is found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes import Report, inductor_options
from pytest_reinplace.passes.inductor import stage
from pytest_reinplace.passes.inductor.defects import DEFECTS, undefended
from pytest_reinplace.passes.inductor.schedule import attempts
from pytest_reinplace.passes.oracle.call import peak

from .defect_programs import PROGRAMS, Program

VERSION = ".".join(torch.__version__.split(".")[:2])

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """With more threads than one, Inductor calls a kernel for some of these on CPUs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.compiler.reset()
    with fresh_inductor_cache():
        yield
    torch.compiler.reset()
    torch.set_num_threads(threads)


def shared(tensors: list[Tensor]) -> list[list[bool]]:
    """Return which of some tensors lie in one storage."""
    places = [t.untyped_storage().data_ptr() for t in tensors]
    return [[one == other for other in places] for one in places]


def close(one: Tensor, other: Tensor) -> bool:
    """Return whether two results are the same, but for roundings, which defects are not."""
    is_alike = (one.dtype, one.shape) == (other.dtype, other.shape)
    return is_alike and bool(torch.isclose(one, other).all())


def tensors_of(inputs: tuple[Tensor, ...], results: Any) -> list[Tensor]:
    found = [t for t in (results if isinstance(results, tuple) else (results,)) if isinstance(t, Tensor)]
    wanted = [result.sum() for result in found if result.requires_grad]
    if wanted:
        torch.stack(wanted).sum().backward()
    return [*inputs, *found, *(t.grad for t in inputs if t.grad is not None)]


def spoil() -> None:
    """Leave numbers that nothing computes in memory that is free: what is read too early is wrong then."""
    filled = [torch.full((count,), -77.0) for count in range(1, 300) for _ in range(4)]
    del filled


@contextlib.contextmanager
def decided(monkeypatch: pytest.MonkeyPatch, program: Program) -> Iterator[None]:
    with monkeypatch.context() as patch:
        if not program.attempts:  # what fails or races would be lowered once more
            patch.setattr(attempts, "lowered", lambda gm, compile_one: compile_one(gm))
        if program.undecided:
            patch.setattr(stage, "reinplace_graph", lambda graph, options, tell: Report())
        yield


def outcome(program: Program, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a compiled program is: ``right``, ``wrong``, ``large`` or ``fails``."""

    def ran(function: Callable[..., Any]) -> list[Tensor]:
        torch.manual_seed(0)
        given = program.inputs()
        return tensors_of(given, function(*given))

    config = torch._inductor.config.patch(**program.options)
    sizes = torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
    compiled = torch.compile(
        program.function, fullgraph=True, dynamic=program.dynamic, options=inductor_options()
    )
    expected = ran(program.function)
    with config, sizes, undefended(*program.hidden_by), decided(monkeypatch, program):
        try:
            if program.earlier:
                compiled(*program.earlier())
            ran(compiled)  # what is compiled only now leaves other numbers in memory
            spoil()
            actual = ran(compiled)
            is_held = program.most is not None and peak(compiled, program.inputs()) > program.most
        except Exception:  # noqa: BLE001  (whatever it is, it is not compiled)
            return "fails"
    same = all(map(close, expected, actual))
    if not same or shared(expected) != shared(actual):
        return "wrong"
    return "large" if is_held else "right"


@pytest.mark.parametrize("name", DEFECTS)
def test_the_register_says_what_is_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row, program = DEFECTS[name], PROGRAMS[name]
    if row.gpu and not torch.cuda.is_available():
        print(f"\n{name}: not run, it needs a GPU")
        pytest.skip("needs a GPU")
    with undefended(name):
        without = outcome(program, monkeypatch)
    print(f"\n{name} on torch {VERSION}: {without} without {row.by}")
    torch.compiler.reset()
    assert outcome(program, monkeypatch) == "right"
    known = "right" if VERSION in row.right else "not right" if VERSION in row.seen else "unknown"
    found = "right" if without == "right" else "not right"
    assert known in (found, "unknown"), f"the register says that it is {known} on torch {VERSION}"
