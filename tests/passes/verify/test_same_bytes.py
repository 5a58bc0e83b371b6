"""Whether an elementwise kernel, in whatever order, reads an element only before it writes it."""

from __future__ import annotations

import torch

from pytest_reinplace.passes.verify.optimum.same_bytes import overlap_elsewhere


def test_its_own_elements_are_where_it_writes() -> None:
    x = torch.arange(12).view(3, 4)
    assert not overlap_elsewhere(x, x)
    assert not overlap_elsewhere(x[1:], x.view(12)[4:].view(2, 4))
    assert not overlap_elsewhere(x[:2], x[2:]) and not overlap_elsewhere(x, x.clone())


def test_half_of_each_element_is_still_its_own() -> None:
    x = torch.zeros(4, dtype=torch.complex64)
    assert not overlap_elsewhere(torch.view_as_real(x)[:, 1], x)


def test_those_of_others_are_not() -> None:
    x = torch.arange(12).view(3, 4)
    assert overlap_elsewhere(x[:2], x[1:]) and overlap_elsewhere(x[:, 1:], x[:, :3])
    assert overlap_elsewhere(x[:2, :2], x[:2, :2].t()) and overlap_elsewhere(x[:, :2].view(torch.int32), x)


def test_another_shape_has_another_order() -> None:
    x = torch.arange(12)
    assert overlap_elsewhere(x, x.view(3, 4))


def test_an_element_that_begins_in_the_middle_of_another_meets_it() -> None:
    base = torch.zeros(4, dtype=torch.int32)
    wide = base.view(torch.int64)
    assert overlap_elsewhere(base[:2], wide)  # the second one lies in the first one of the other
    assert not overlap_elsewhere(base[::2], wide)
