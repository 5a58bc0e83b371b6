"""Seeds of random graphs that were once rewritten wrongly."""

from __future__ import annotations

import pytest

from pytest_reinplace.passes.oracle import judged
from pytest_reinplace.passes.strategies import random_graph


@pytest.mark.parametrize(
    "seed",
    [
        18980,  # an old value that was kept for a scatter was taken for what lies there
        29135,  # a copied operand of a call began elsewhere than a subgraph expected
        31865,  # so did one that a subgraph writes in place
        52634,  # and the result of a call, which the caller addresses by an offset
        59850,  # the source of a scatter was taken for its operand, of which a clone was made early
        63839,  # offsets into a result that was laid out like its operand
        54577,  # a copy of an old value for a scatter that names bytes by offsets
        77013,
    ],
)
def test_a_graph_that_was_wrong_once_is_right(seed: int) -> None:
    verdict = judged(random_graph(seed), optimum=False)
    assert verdict.problem is None, verdict.message
