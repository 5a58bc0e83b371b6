import pytest
import torch


@pytest.mark.reinplace(tolerance=1e-6)
def test_nested(assert_reinplaced):
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    if nested.is_nested:
        pytest.skip("not for nested tensors")
    assert_reinplaced(lambda x: x.add_(1), nested)
