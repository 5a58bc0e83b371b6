import pytest
import torch


@pytest.mark.reinplace(pass_="rewriting:rewrit", max_clones=0)
def test_limit():
    torch.compile(lambda x: x.add_(1))(torch.ones(4))
