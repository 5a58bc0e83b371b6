"""Small programs with known candidates, for tests and for the projects that tests make."""

from __future__ import annotations

import inspect

import torch


def register():
    """Register ``plugintest::write``, which writes ``value`` into the first elements of ``out``, once."""
    if hasattr(torch.ops.plugintest, "write"):
        return

    @torch.library.custom_op("plugintest::write", mutates_args={"out"})
    def write(out: torch.Tensor, value: torch.Tensor) -> None:
        out[: value.shape[0]] = value


def update(x, index, value):
    """Hold one candidate, ``aten::index_put.self``, in place with every pass."""
    x[index] = value
    return value * 2


def keep(x):
    """Hold one candidate, ``aten::index_put.self``, a clone with every pass: the old value is read."""
    y = x * 2
    new = y.index_put((torch.tensor([0]),), torch.ones(1))
    return new, y.sum()


def call_op(out, value):
    """Hold one candidate, ``plugintest::write.out``, in place with every pass."""
    torch.ops.plugintest.write(out, value)
    return value + 1


def pure(x):
    """Hold no candidate."""
    return x + 1


class ReadRow(torch.autograd.Function):
    """Sum a product whose second factor is held fixed, but of one row the squares instead."""

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


def read_row(x, row):
    """Hold one candidate, ``aten::select_scatter.self``, in the backward; Inductor leaves it functional.

    It writes into the result of a matrix product and is the gradient, so both versions are in memory.
    """
    return ReadRow.apply(x, row)


def inputs(fn):
    """Return arguments for one of the programs."""
    return {
        "update": lambda: (torch.zeros(8), torch.tensor([1, 3]), torch.ones(2)),
        "keep": lambda: (torch.ones(8),),
        "call_op": lambda: (torch.zeros(8), torch.ones(4)),
        "pure": lambda: (torch.ones(8),),
        "read_row": lambda: (torch.ones(4, 4, requires_grad=True), 1),
    }[fn.__name__]()


_FUNCTIONS = (register, update, keep, call_op, pure, ReadRow, read_row, inputs)

register()

# The same as a module of its own, for projects that tests make.
PROGRAMS = "\n\n".join(["import torch\n", *map(inspect.getsource, _FUNCTIONS), "register()\n"])

__all__ = ["PROGRAMS", *(function.__name__ for function in _FUNCTIONS)]
