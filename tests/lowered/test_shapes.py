"""Ten shapes of programs: what is known without running a kernel is what is measured, to the byte."""

from __future__ import annotations

import pytest

from .measured import memory_of, only
from .programs import SHAPES, Shape

BELOW = {"split": 512, "loop": 512}  # where more is held than one call needs

pytestmark = pytest.mark.usefixtures("unoptimized")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.fn.__name__)
def test_the_static_peak_is_the_measured_one(shape: Shape) -> None:
    found = memory_of(shape.fn, *shape.args())
    program = only(found)
    assert program.taken is not None
    assert (program.graph, program.taken.peak, found.measured) == ("[fw 0/0]", shape.peak, shape.peak)
    assert program.taken.bound == BELOW.get(shape.fn.__name__, shape.peak)
    assert found.over_bound == found.measured / program.taken.bound
    assert program.workspaces == ()
    assert sum(one.nbytes for one in program.at_peak) == shape.peak
    computed = [one for one in program.taken.allocations if "clone()" not in one.text]
    assert all(one.origin.nodes for one in computed)
    assert all("programs.py:" in one.origin.source for one in program.taken.allocations)
