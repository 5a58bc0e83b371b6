import pytest
import torch


class Accumulate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, total):
        ctx.total = total
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        result = grad.mm(grad)
        result[0] = 1
        return result, None


@pytest.mark.reinplace(backend="inductor", pass_="exact")
def test_backward(assert_clones):
    x = torch.ones(4, 4, requires_grad=True)
    torch.compile(lambda x: Accumulate.apply(x, None).sum())(x).backward()
    assert "aten::select_scatter.self" not in assert_clones
    assert x.grad[0].tolist() == [1, 1, 1, 1]


def test_step(assert_clones):
    weight = torch.nn.Embedding(4, 4)
    state = torch.zeros(4, 4)

    def step(grad, rows):
        with torch.no_grad():
            state[rows] = state[rows] * 0.9 + grad
            weight.weight[rows] -= 0.1 * state[rows]

    torch.compile(step)(torch.ones(2, 4), torch.tensor([0, 2]))
    assert assert_clones == []
