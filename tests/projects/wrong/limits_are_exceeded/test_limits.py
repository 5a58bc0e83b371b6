import pytest
import torch


def keep(x):
    y = x * 2
    return y.index_put((torch.tensor([0]),), torch.ones(1)), y.sum()


@pytest.mark.reinplace(max_clones=0)
def test_clones():
    torch.compile(keep)(torch.ones(1024))


@pytest.mark.reinplace(max_clones=1, max_clone_bytes="4095")
def test_bytes():
    torch.compile(keep)(torch.ones(1024))


@pytest.mark.reinplace(max_peak_bytes="1KiB")
def test_peak(reinplace):
    reinplace.run(keep, torch.ones(1024))


@pytest.mark.reinplace(max_peak_bytes="1GiB")
def test_unmeasured(reinplace):
    reinplace.compile(keep)(torch.ones(1024))


@pytest.mark.reinplace(max_clones=0)
def test_no_candidate():
    torch.compile(lambda x: x + 1)(torch.ones(4))


@pytest.mark.reinplace(max_clones=0)
class TestAll:
    def test_inherited(self, reinplace):
        reinplace.run(keep, torch.ones(1024))

    @pytest.mark.reinplace(max_clones=1)
    def test_closest_wins(self, reinplace):
        reinplace.run(keep, torch.ones(1024))
