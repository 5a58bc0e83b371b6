"""The table of what operators do beyond their schemas."""

from __future__ import annotations

import operator
from typing import Any

import torch

from pytest_reinplace.passes.ops.schema import schema_of, traits_of
from pytest_reinplace.passes.ops.traits import Traits, overloads, row_of

aten: Any = torch.ops.aten


def test_a_row_is_of_all_overloads_but_those_with_one_of_their_own() -> None:
    assert row_of("aten::view", "default").regroups
    assert not row_of("aten::view", "default").retypes
    assert row_of("aten::view", "dtype").retypes
    assert schema_of(aten.scatter.src).stores == schema_of(aten.scatter.value).stores == "src"


def test_nothing_is_known_of_what_has_no_row() -> None:
    assert row_of("mylib::f", "default") == Traits()
    assert traits_of(operator.getitem) == traits_of("output") == Traits()
    assert traits_of(torch.ops.higher_order.cond) == Traits()


def test_an_operator_is_asked_as_any_target_is() -> None:
    assert traits_of(aten.clone.default) is schema_of(aten.clone.default)
    assert traits_of(aten.clone.default).is_copy


def test_operators_are_found_by_what_they_do() -> None:
    views = overloads(lambda traits: traits.writes_through)
    assert aten.slice_scatter.default in views and len(views) == 4
    assert all(row_of(op._schema.name, "default").is_scatter for op in views)
    assert overloads(lambda traits: traits.retypes and traits.regroups) == (aten.view.dtype,)
