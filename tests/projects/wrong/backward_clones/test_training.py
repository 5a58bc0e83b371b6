import threading

import pytest
import torch


class ReadRow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, row):
        ctx.save_for_backward(x)
        ctx.row = row
        product = torch.mm(x, x)
        return product.sum() - product[row].sum() + (x[row] * x[row]).sum()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        result = torch.mm(grad.expand(x.shape), x.t())
        result[ctx.row] = 2 * grad * x[ctx.row]
        return result, None


def loss(x):
    return ReadRow.apply(x, 1)


@pytest.fixture
def x():
    return torch.ones(4, 4, requires_grad=True)


def test_both_ways(assert_clones, x):
    torch.compile(loss)(x).backward()
    assert assert_clones == []


def test_forward_alone(assert_clones, x):
    assert assert_clones(loss, x) == []


@pytest.mark.reinplace(max_clones=0)
def test_limit(x):
    torch.compile(loss)(x).backward()


def test_in_a_thread(assert_reinplaced, x):
    found = torch.compile(loss)(x)
    thread = threading.Thread(target=found.backward)
    thread.start()
    thread.join()
    assert_reinplaced()
