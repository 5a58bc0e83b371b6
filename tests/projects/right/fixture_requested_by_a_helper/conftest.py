import pytest
import torch


@pytest.fixture
def compiled(reinplace):
    return lambda fn: torch.compile(fn, fullgraph=True)
