"""Random programs: the peak of each is explained to the byte, and no less than its lower bound.

``REINPLACE_PROGRAMS=500 pytest tests/lowered/test_random.py`` tries so many, half of them hard ones, from
``REINPLACE_FIRST_PROGRAM`` on (one or two seconds each).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch._inductor.utils import fresh_inductor_cache

from pytest_reinplace.passes.fuzz.program import HardProgram, RandomProgram

from .measured import memory_of

_COUNT = int(os.environ.get("REINPLACE_PROGRAMS", "6"))
_FIRST = int(os.environ.get("REINPLACE_FIRST_PROGRAM", "0"))


@pytest.fixture(autouse=True)
def quick(unoptimized: None) -> Iterator[None]:
    with fresh_inductor_cache(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.compiler.reset()


def _is_refused(program: HardProgram | RandomProgram, error: Exception) -> bool:
    """Return whether torch does not run it either, with breaks between its graphs as here.

    Neither its functional graphs, or, by Inductor alone, for the very same reason.
    """
    for backend in ("aot_eager_decomp_partition", "inductor"):
        torch.compiler.reset()
        try:
            with torch.no_grad():
                torch.compile(program.function(), backend=backend)(*program.inputs())
        except Exception as other:  # noqa: BLE001  (whatever it raises)
            if backend != "inductor" or repr(other) == repr(error):
                return True
    return False


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _COUNT))
def test_a_random_program_is_explained(seed: int) -> None:
    program = HardProgram(seed) if seed % 2 else RandomProgram(seed)
    try:
        with torch.no_grad():
            program.function()(*program.inputs())
    except (RuntimeError, IndexError):
        pytest.skip("it does not run eagerly")
    name = "exact" if seed % 6 else "inductor"  # by itself that may write where nothing is: hard program 243
    try:
        with torch.no_grad():
            found = memory_of(program.function(), *program.inputs(), pass_name=name)
    except Exception as error:
        if name == "exact" and not _is_refused(program, error):
            raise
        pytest.skip("torch does not compile it")  # nor may Inductor alone what our pass compiles
    assert found.programs or not found.measured  # where nothing is computed there is no program
    assert [one.problem for one in found.programs if one.problem] == [], program.source
    gaps = [gap for one in found.programs for gap in one.gaps]
    assert (found.unexplained, gaps) == (0, []), program.source
    for one in found.programs:
        assert one.taken is not None
        assert 0 <= one.taken.bound <= one.taken.peak, program.source
    assert found.bound <= found.measured, program.source
