"""Random graphs with which something was wrong once: a rewrite, its bytes, or the optimum itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pytest_reinplace.passes.oracle.verdict import judged
from pytest_reinplace.passes.strategies import replayed

_FOUND = yaml.safe_load(Path(__file__).with_name("found_graphs.yaml").read_text())


def found(name: str) -> list[object]:
    """Return the graphs of a group, as parameters."""
    return [
        pytest.param([int(number) for number in one["choices"].split()], id=f"{i}: {one['about']}")
        for i, one in enumerate(_FOUND[name])
    ]


def test_most_choices_are_taken_as_they_were() -> None:
    """A torch that lacks an operator has fewer to choose from; another generator would cut them all."""
    every = [[int(n) for n in one["choices"].split()] for group in _FOUND.values() for one in group]
    taken = [replayed(choices).choices for choices in every]
    exact = [mine[: len(own)] == own[: len(mine)] for mine, own in zip(every, taken, strict=True)]
    assert sum(exact) >= 0.95 * len(exact)


@pytest.mark.parametrize("choices", found("wrong"))
def test_a_graph_that_was_wrong_once_is_right(choices: list[int]) -> None:
    verdict = judged(replayed(choices), optimum=False)
    assert verdict.problem is None, verdict.message


@pytest.mark.parametrize("choices", found("above_the_optimum"))
def test_a_graph_that_was_above_the_optimum_once_is_not(choices: list[int]) -> None:
    verdict = judged(replayed(choices))
    assert verdict.problem is None, verdict.message
    assert verdict.after <= verdict.least


@pytest.mark.parametrize("choices", found("luck"))
def test_what_a_kernel_may_read_is_no_luck(choices: list[int]) -> None:
    """The search for the optimum once took for legal what no kernel promises."""
    verdict = judged(replayed(choices))
    assert verdict.least == verdict.after
