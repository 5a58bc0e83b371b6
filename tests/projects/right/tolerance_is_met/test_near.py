import pytest
import torch


def normalized(x, out, slot):
    out[slot] = torch.softmax(x, 0) * (1.0001 if torch.compiler.is_compiling() else 1.0)
    return out + 1


def rooted(x, out, slot):
    out[slot] = x.sqrt()
    return out


def arguments():
    return torch.tensor([-1.0, 4.0]), torch.zeros(8), torch.tensor([1, 5])


@pytest.mark.reinplace(tolerance={"rtol": 1e-3, "atol": 0.0})
def test_relative(assert_reinplaced):
    assert_reinplaced(normalized, *arguments())


@pytest.mark.reinplace(tolerance={"atol": 1e-3})
def test_absolute(assert_clones):
    assert assert_clones(normalized, *arguments()) == []


@pytest.mark.reinplace(tolerance=0)
def test_exact(reinplace):
    reinplace.run(rooted, *arguments())


@pytest.mark.reinplace(tolerance=1e-6)
def test_not_a_number(assert_reinplaced):
    result = assert_reinplaced(rooted, *arguments())
    assert result.isnan().sum() == 1
