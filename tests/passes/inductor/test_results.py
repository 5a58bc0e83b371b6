"""What a call returns of what it wrote in place is bound to no name: it would be held until the end."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._inductor import ir
from torch._inductor.utils import run_and_get_code

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.inductor.schedule._torch import AFTER_FUSION, names_operand
from pytest_reinplace.passes.inductor.schedule.check import ScheduleCheck
from pytest_reinplace.passes.oracle.call import called, differences, peak

Tensor = torch.Tensor
Filter = Callable[[Tensor], Tensor]
BANDS = torch.tensor([1, 2, 3])
SPECTRUM = 64 * 129 * 8  # bytes of one spectrum
pytestmark = pytest.mark.usefixtures("quick")


def notch(spectrum: Tensor) -> Tensor:
    spectrum[:, BANDS] = 0
    return spectrum


def soft_limit(spectrum: Tensor) -> Tensor:
    spectrum[:, 40:].mul_(0.5)
    return spectrum


def dropped(spectrum: Tensor) -> Tensor:
    return spectrum.scatter_(1, BANDS.expand(64, 3), 0)


def lowest(spectrum: Tensor) -> Tensor:
    """The layer of a Fourier neural operator: few modes are kept, of which there is a factor each."""
    kept = torch.zeros_like(spectrum)
    kept[:, :9] = spectrum[:, :9] * 2
    return kept


def layers(count: int, one: Filter, *, is_kept: bool = False) -> Callable[[Tensor], Any]:
    def program(x: Tensor) -> Any:
        spectra = []
        for _ in range(count):
            spectra.append(one(torch.fft.rfft(x)))
            x = torch.fft.irfft(spectra[-1])
        return (x, *spectra) if is_kept else x

    return program


def signal() -> list[Tensor]:
    return [torch.linspace(0, 9, 64 * 256).sin().view(64, 256)]


def height(program: Callable[[Tensor], Any], options: dict[str, Any]) -> int:
    torch.compiler.reset()
    compiled = torch.compile(program, fullgraph=True, options=options)
    torch.testing.assert_close(compiled(*signal()), program(*signal()))
    return peak(compiled, signal())


@pytest.mark.parametrize("one", [notch, soft_limit, dropped])
def test_more_layers_hold_no_more(one: Filter) -> None:
    few, many = (height(layers(n, one), inductor_options()) for n in (2, 6))
    assert many <= few + SPECTRUM // 2
    assert many <= height(layers(6, one), {})


def test_what_is_returned_is_held() -> None:
    few, many = (height(layers(n, notch, is_kept=True), inductor_options()) for n in (2, 6))
    assert many >= few + 4 * SPECTRUM


def test_a_layer_of_a_neural_operator_writes_its_modes_in_place() -> None:
    assert height(layers(6, lowest), inductor_options()) < height(layers(6, lowest), {})


def test_the_result_of_such_a_call_keeps_its_name_where_it_is_read() -> None:
    """Inductor's own pass puts the same calls in place, and reads what they return."""
    torch.compiler.reset()
    program = layers(2, notch)
    compiled = torch.compile(program, fullgraph=True, options={AFTER_FUSION: ScheduleCheck()})
    expected = called(program, signal())
    actual, (code,) = run_and_get_code(lambda: called(compiled, signal()))
    assert not list(differences(expected, actual))
    assert code.count("= torch.ops.aten.index_put_.default(") == 2


def test_such_a_call_in_a_program_in_cpp() -> None:
    """It is called by another way there, by which it returns nothing as well."""
    program = layers(2, dropped)
    compiled = torch.compile(program, fullgraph=True, options={**inductor_options(), "cpp_wrapper": True})
    assert not list(differences(called(program, signal()), called(compiled, signal())))


@pytest.mark.skipif(torch.__version__ >= "2.15", reason="torch 2.15 deletes them")
@pytest.mark.parametrize("is_apart", [True, False])
def test_a_call_whose_result_is_one_tensor_keeps_its_name(is_apart: bool) -> None:
    """A lowering of somebody else may make such a call: it is read by its own name, not by that of a part."""
    cpu = torch.device("cpu")
    call = ir.FallbackKernel.__new__(ir.FallbackKernel)
    call.layout = (
        ir.MultiOutputLayout(device=cpu) if is_apart else ir.FixedLayout(cpu, torch.float32, [4], [1])
    )
    call.mutation_names = ["buf0"]
    assert names_operand(SimpleNamespace(node=call)) == is_apart


@pytest.mark.skipif(torch.__version__ >= "2.15", reason="torch 2.15 deletes them")
def test_inductor_holds_them_by_itself() -> None:
    """``schedule/results.py`` may go with the last torch for which this is run and passes."""
    few, many = (height(layers(n, notch), {}) for n in (2, 6))
    assert many >= few + 4 * SPECTRUM
