import pytest
import torch


class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(8, 4))
        self.scale = torch.nn.Linear(4, 4, bias=False)

    def forward(self, x, slot):
        self.rows[slot] = self.scale(x)
        return self.rows.sum()


@pytest.mark.reinplace(tolerance=1e-5)
def test_module(assert_reinplaced, assert_clones):
    with torch.no_grad():
        assert_reinplaced(Cache(), torch.ones(2, 4), torch.tensor([1, 5]))
    assert assert_clones == []


@pytest.mark.reinplace(max_clones=0, max_clone_bytes=0)
def test_compiled_in_place():
    module = Cache().requires_grad_(False)
    module.compile()
    module(torch.ones(2, 4), torch.tensor([1, 5]))
    assert module.rows[5].abs().sum() > 0
