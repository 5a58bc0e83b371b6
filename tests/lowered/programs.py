"""Programs of ten shapes, and operators that allocate by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch._higher_order_ops.while_loop import while_loop

_LIBRARY = torch.library.Library("lowertest", "FRAGMENT")
_LIBRARY.define("bump_(Tensor(a!) x, Tensor v) -> ()")
_LIBRARY.define("scratch(Tensor x) -> Tensor")


def _bump(x: torch.Tensor, v: torch.Tensor) -> None:
    x.add_(v)


def _scratch(x: torch.Tensor) -> torch.Tensor:
    room = torch.zeros(1000)
    return x + room[0]


_LIBRARY.impl("bump_", _bump, "CPU")
_LIBRARY.impl("scratch", _scratch, "CPU")
torch.library.register_fake("lowertest::bump_", lambda x, v: None, lib=_LIBRARY)
torch.library.register_fake("lowertest::scratch", torch.empty_like, lib=_LIBRARY)


def index_put(c: Any, k: Any, i: Any) -> Any:
    c[i] = k * 2
    return c.sum(0)


def wrapper(c: Any, v: Any) -> Any:
    torch.ops.lowertest.bump_(c[2:6], v)
    return c * 2


def clone_left(c: Any, v: Any) -> Any:
    d = c.clone()
    torch.ops.lowertest.bump_(d, v)
    return c + d


def cat(a: Any, b: Any) -> Any:
    x = torch.cat([a * 2, b.sin()])
    torch.ops.lowertest.bump_(x, x.detach().clone())
    return x


def split(x: Any, w: Any) -> Any:
    t = x * w + 1
    torch.ops.lowertest.bump_(t[:4], x[:4])
    return t.sum(1), (t @ w)


def cond(p: Any, x: Any) -> Any:
    return torch.cond(p, lambda x: (x @ x).relu(), lambda x: x.sin() + x.sum(), (x,))


def loop(x: Any) -> Any:
    start = torch.zeros((), dtype=torch.long)
    return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, (y @ y) / 10), (start, x))


def as_strided(x: Any) -> Any:
    return torch.as_strided(x, (4, 4), (2, 1), 1) * 2


def product(a: Any, b: Any) -> Any:
    return (a @ b).relu() @ b


def foreach(a: Any, b: Any, c: Any) -> Any:
    torch._foreach_add_([a, b], c)
    return [t.sum() for t in (a, b)]


def scratch(x: Any) -> Any:
    return torch.ops.lowertest.scratch(x * 2) + 1


class Counting(torch.nn.Module):
    """Adds another number in each of the first calls, so that each compiles."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.calls < 2:
            self.calls += 1
            return x * 1000 + torch.ones(5 * self.calls, device=x.device).sum()
        return x + 1


def ones(*size: int) -> torch.Tensor:
    return torch.ones(size)


class Shape(NamedTuple):
    """A program, what makes its arguments, and the bytes that its generated program holds at its peak."""

    fn: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    peak: int


SHAPES = (
    Shape(index_put, lambda: (ones(16, 8), ones(3, 8), torch.tensor([1, 5, 7])), 32),
    Shape(wrapper, lambda: (ones(8, 8), ones(4, 8)), 256),
    Shape(clone_left, lambda: (ones(8, 8), ones(8, 8)), 512),
    Shape(cat, lambda: (ones(4, 8), ones(4, 8)), 256),
    Shape(split, lambda: (ones(8, 8), ones(8, 8)), 544),
    Shape(cond, lambda: (torch.tensor(True), ones(8, 8)), 256),
    Shape(loop, lambda: (ones(8, 8),), 537),
    Shape(as_strided, lambda: (ones(32)[3:],), 64),
    Shape(product, lambda: (ones(8, 8), ones(8, 8)), 512),
    Shape(foreach, lambda: (ones(8), ones(8), [ones(8), ones(8)]), 8),
)
