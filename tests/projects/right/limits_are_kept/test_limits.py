import pytest
import torch


def keep(x):
    y = x * 2
    return y.index_put((torch.tensor([0]),), torch.ones(1)), y.sum()


@pytest.mark.reinplace(max_clones=1, max_clone_bytes="4KiB", max_peak_bytes="1 MiB")
def test_all(reinplace):
    run = reinplace.run(keep, torch.ones(1024))
    assert run.report.clones == ["aten::index_put.self"]
    assert run.result[1] == 2048


@pytest.mark.reinplace(max_clones=1)
class TestTwice:
    def test_first(self):
        torch.compile(keep)(torch.ones(4))

    def test_second(self):
        torch.compile(keep)(torch.ones(4))
