"""What a compiled program holds at its peak, and how many kernels it has: never more than without us."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch._inductor import metrics

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.oracle.call import called, differences, peak

from .peak_programs import PAIRS, Function, Pair

pytestmark = pytest.mark.usefixtures("quick")


class Cost(NamedTuple):
    """What a compiled program costs.

    Args:
        wrong: what differs from eager mode: values, inputs, layouts, who shares memory with whom.
        peak: the most bytes that a call holds, above the level at its start.
        kernels: how many Inductor wrote.
    """

    wrong: list[str]
    peak: int
    kernels: int


def cost(program: Function, pair: Pair, options: dict[str, Any]) -> Cost:
    torch.compiler.reset()
    metrics.reset()
    expected = called(program, pair.inputs())
    compiled = torch.compile(program, fullgraph=True, options=options)
    wrong = list(differences(expected, called(compiled, pair.inputs())))
    return Cost(wrong, peak(compiled, pair.inputs()), metrics.generated_kernel_count)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.program.__name__)
def test_no_copy_is_made_but_the_one_that_the_twin_needs(pair: Pair) -> None:
    plain, twin = (cost(program, pair, inductor_options()) for program in (pair.program, pair.twin))
    assert plain.wrong == twin.wrong == []
    assert twin.peak >= plain.peak + pair.kept
    stock = cost(pair.program, pair, {})
    assert stock.wrong or (plain.peak <= stock.peak and plain.kernels <= stock.kernels)
    without_the_copy = cost(pair.twin, pair, {})
    assert without_the_copy.wrong or twin.peak <= without_the_copy.peak
