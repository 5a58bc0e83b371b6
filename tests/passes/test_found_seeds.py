"""Seeds of random graphs that were once rewritten wrongly."""

from __future__ import annotations

import pytest

from pytest_reinplace.passes.oracle import judged
from pytest_reinplace.passes.strategies import random_graph, replayed


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
        161572,  # an operand that a subgraph hands through unread: whoever reads the result reads it
        197632,
    ],
)
def test_a_graph_that_was_wrong_once_is_right(seed: int) -> None:
    verdict = judged(random_graph(seed), optimum=False)
    assert verdict.problem is None, verdict.message


def _choices(text: str) -> list[int]:
    return [int(number) for number in text.split()]


@pytest.mark.parametrize(
    "choices",
    [
        # an early clone for a scatter that names bytes by offsets, in a graph where nothing else does
        "3 0 0 0 0 0 2 6 0 0 12 50 0 0 16 15 0 0 1 0 0 0 0 0 0 4 16 0 0 1 7 0 0 0 0 0 0 0 0 0 0",
        # such a scatter of a result that could be laid out like its operand
        "2 0 5 0 0 50 3 16 0 0 0 0 0 0 0 0 0 30 14 50 0 0 24 0 0 0 0 0 0 0 0 29 0 0 0 7 0 0 0 5 0 16 0 0 1"
        " 0 0 0 0 0 0 0 0 0 0",
        # an old value that was copied before a real write, and overwritten earlier
        "5 1 0 0 0 30 4 0 0 0 5 6 0 0 1 7 50 2 0 0 0 0 0 0 54 0 0 0 0 2 2 0 0 16 15 0 1 2 0 0 0 0 0 34 15"
        " 0 0 13 0 0 40 16 0 0 0 0 1 3 0 0 0 0 0 16 0 0 0 6 0 3 0 0 35 5 16 41 95 1 3 4 0 2 11 26 10 0 0 0"
        " 80 52 78 0 0 0",
        # an operand that a subgraph hands through unread: whoever reads the result reads it
        "0 2 0 0 0 30 0 0 0 30 3 0 0 50 4 24 0 0 0 0 0 0 0 0 6 0 0 0 12 50 0 0 0 19 63 44 0 0 0 3 47 58 0"
        " 0 0 58 1 53 86 1 8 0 0 0 2 60 3 1 17 21 6 6 18 2 29 86 0 0 0 0 0 0 1 34 69 0 0 0 60 4 21 0 0 0 0"
        " 0 0 0 2 40 41 84 6 1 34 17 0 0 0 1 96 13 0 0 0 7 89 2 32 98 2 0",
        # an operand kept as a copy, which begins elsewhere, for a subgraph whose result begins like it
        "0 2 0 0 0 30 0 0 0 0 2 7 0 0 50 4 24 0 0 0 0 0 1 0 15 1 0 0 59 2 1 0 0 0 0 0 1 2 6 0 0 0 14"
        " 0 0 0 0 0 6 15 0 1 12 71 0 0 2 45 0 0 0 0 1 1 50 70 0 0 64 35 0 0 0 0 1 2 0 0 1 45 31 11 0 0"
        " 0 0 0 0 0 0 11 94 18 3 0 0 2 13 0 0 79 1 4 3 0 1 3 0 1 3 0 0 0 3 3 1 1 2 0 0 0 0 0 0 66 57"
        " 97 68 0 0 0 0 0 0",
    ],
)
def test_a_small_graph_that_was_wrong_once_is_right(choices: str) -> None:
    verdict = judged(replayed(_choices(choices)), optimum=False)
    assert verdict.problem is None, verdict.message


@pytest.mark.parametrize(
    "seed",
    [
        24596,  # two bases of a call lay in one buffer because of a third candidate, which costs nothing
        200328,
        15143,  # the first choice that helped a little stood in the way of one that helps more
        21574,
        200830,  # a conversion that another layout made necessary was not counted
        21159,  # what is computed from a result laid out anew was taken for laid out as the graph says
        5578,  # a clone that asks for dense strides, of a result that was dense and is so no more
        22630,  # a source, laid out anew, of a scatter that names elements by strides
        501765,  # a row stored elsewhere in its buffer
        805470,  # a call that is copied whole for the sake of a later one, which then need not copy
        3626,  # a clone that asks for the strides that its operand has, and was taken for a conversion
        820667,  # a call that writes copies of parts, for the sake of which a returned clone was made
        820015,  # two choices, the first of which costs more by itself
        842766,  # every second of the rows that a scatter puts back, of columns
        869739,  # a part put at the end of fresh memory, which was counted as a clone
        800952,  # an old value that is put somewhere by offsets
        1002388,  # of two results that share a buffer, the one that was kept costs nothing to part
        1003660,  # a choice that lays open what else stands in the way
        1002525,  # an operator of whose strides fake tensors lie only for some layouts
        1000727,
        4004072,  # a collective whose result differs in the stride of a dimension of one
        4008373,  # one of two operators whose own layout stands in the other's way
    ],
)
def test_a_graph_that_was_above_the_optimum_once_is_not(seed: int) -> None:
    verdict = judged(random_graph(seed))
    assert verdict.problem is None, verdict.message
    assert verdict.after <= verdict.least


@pytest.mark.parametrize(
    "seed",
    [
        201086,  # a kernel that happened to read an element before it wrote it
        200515,  # one that reads other numbers, and returns nothing that shows it
        800086,  # an elementwise one whose elements lie in the bytes of others
    ],
)
def test_what_a_kernel_may_read_is_no_luck(seed: int) -> None:
    verdict = judged(random_graph(seed))
    assert verdict.least == verdict.after


def test_readers_in_several_buffers_are_satisfied_one_by_one() -> None:
    choices = (
        "0 2 0 0 0 30 0 0 0 0 5 0 0 0 0 3 16 0 0 0 8 1 3 0 0 30 12 0 0 0 1 0 29 0 0 1 4 0 0 1 0 0 1 0 51"
        " 0 0 0 2 2 16 0 0 3 7 0 0 1 1 0 0 0 16 0 0 0 3 0 0 30 1 0 0 0 6 0 2 0 0 0 0 0 0 0 0 35 0 0 3 0 0"
    )
    verdict = judged(replayed(_choices(choices)))
    assert (verdict.problem, verdict.after) == (None, verdict.least)
