"""What a compiled program holds at its peak, and how many kernels it has: never more than without us."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch._inductor import metrics

from pytest_reinplace.passes import inductor_options
from pytest_reinplace.passes.oracle.call import called, differences, peak

from .peak_programs import ALL, PAIRS, Function, Pair, clipped_parts, remembered, roots_of_parts, two

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


@pytest.mark.parametrize("program", [clipped_parts, roots_of_parts])
def test_parts_of_a_buffer_are_computed_where_they_are(program: Function) -> None:
    """Inductor computes the buffer anew, in one loop that asks for each element in which part it is."""
    pair = Pair(program, remembered(program), two, ALL)
    plain, twin, stock = (
        cost(p, pair, options)
        for p, options in (
            (pair.program, inductor_options()),
            (pair.twin, inductor_options()),
            (pair.program, {}),
        )
    )
    assert plain.wrong == twin.wrong == stock.wrong == []
    assert plain.peak + ALL <= min(stock.peak, twin.peak)
