"""Peak memory of a call."""

from __future__ import annotations

import pytest
import torch

from pytest_reinplace.call.peak import highest, measured


def one_temporary(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return y.sum()


def two_temporaries(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    z = y.cos()
    return (y + z).sum()


def test_it_is_the_most_that_was_live_and_not_what_was_allocated() -> None:
    x = torch.ones(1000)
    assert measured(lambda: one_temporary(x))[1] == pytest.approx(4000, abs=64)
    assert measured(lambda: two_temporaries(x))[1] == pytest.approx(12000, abs=64)
    assert measured(lambda: [x.sin() for _ in range(3)] and None)[1] == pytest.approx(12000, abs=64)

    def one_after_the_other() -> None:
        for _ in range(5):
            x.sin()

    assert measured(one_after_the_other)[1] == pytest.approx(4000, abs=64)


def test_it_is_the_same_at_every_run_and_the_result_comes_back() -> None:
    x = torch.rand(100, 100)
    runs = [measured(lambda: torch.softmax(x @ x, 0)) for _ in range(3)]
    assert len({peak for _, peak in runs}) == 1
    torch.testing.assert_close(runs[0][0], torch.softmax(x @ x, 0))


def test_writing_in_place_allocates_nothing() -> None:
    x = torch.ones(1000)
    assert measured(lambda: x.zero_())[1] == 0


def test_memory_from_before_does_not_count_when_it_is_released() -> None:
    held = [torch.ones(1000)]
    assert measured(held.clear)[1] == 0


def test_the_highest_level_of_a_sequence() -> None:
    assert highest([]) == 0
    assert highest([8, 4, -4, 2, -10]) == 12
    assert highest([-5, 3]) == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_cuda_it_is_what_was_requested() -> None:
    x = torch.ones(1000, device="cuda")
    torch.cuda.synchronize()
    assert measured(lambda: one_temporary(x), "cuda")[1] in (4000, 4004)
    assert measured(lambda: x.zero_(), "cuda")[1] == 0
