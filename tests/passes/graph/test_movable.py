"""What computes the same wherever it stands."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pytest_reinplace.passes.graph.movable import is_movable

aten = torch.ops.aten
X, PLACES, MASK = torch.ones(4, 2), torch.tensor([1, 3]), torch.tensor([True, False, True, True])


@pytest.mark.parametrize(("picked_by", "expected"), [(PLACES, True), (MASK, False)])
def test_what_is_picked_moves_unless_data_tell_its_size(picked_by: torch.Tensor, expected: bool) -> None:
    gm = make_fx(lambda x, by: aten.index.Tensor(x, [by]), tracing_mode="symbolic")(X, picked_by)
    (node,) = gm.graph.find_nodes(op="call_function", target=aten.index.Tensor)
    assert is_movable(node) is expected
