"""Programs for which lowering adds copies: what is asked for, of whom, and how many bytes that takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch._higher_order_ops.while_loop import while_loop

library = torch.library.Library("copying", "FRAGMENT")
ALL = "CompositeExplicitAutograd"  # every device
library.define("dense(Tensor x) -> Tensor", tags=(torch.Tag.needs_contiguous_strides,))
library.define("pair(Tensor x, Tensor y) -> Tensor", tags=(torch.Tag.needs_contiguous_strides,))
library.define("parts(Tensor[] xs) -> Tensor", tags=(torch.Tag.needs_contiguous_strides,))
library.define("same(Tensor x) -> Tensor", tags=(torch.Tag.needs_exact_strides,))
library.define("any(Tensor x) -> Tensor", tags=(torch.Tag.flexible_layout,))
for name in ("dense", "same", "any"):
    library.impl(name, lambda x: (x + 1).contiguous(), ALL)
    torch.library.register_fake(f"copying::{name}", lambda x: x.new_empty(x.shape), lib=library)
library.impl("pair", lambda x, y: (x + y).contiguous(), ALL)
torch.library.register_fake("copying::pair", lambda x, y: x.new_empty(x.shape), lib=library)
library.impl(
    "parts", lambda xs: torch.stack([x.contiguous() for x in xs]).sum(0), "CompositeExplicitAutograd"
)
torch.library.register_fake("copying::parts", lambda xs: xs[0].new_empty(xs[0].shape), lib=library)
ops = torch.ops.copying


class Planted(NamedTuple):
    """A program, and the copies that lowering adds: label, bytes, cause."""

    fn: Any
    args: tuple[Any, ...]
    found: list[tuple[str, int, str]]


def demanded(x: torch.Tensor) -> Any:
    return ops.dense(x.t())


def demanded_of_computed(x: torch.Tensor) -> Any:
    y = x * 2
    return ops.dense(y.t()), y


def demanded_of_one(x: torch.Tensor, y: torch.Tensor) -> Any:
    return ops.pair(x.t(), y)


def demanded_of_a_list(x: torch.Tensor, y: torch.Tensor) -> Any:
    return ops.parts([x, y.t()])


def demanded_of_expanded(x: torch.Tensor) -> Any:
    return ops.dense(x.expand(8, 8))


def traced_strides(x: torch.Tensor, w: torch.Tensor) -> Any:
    return ops.same(torch.conv2d(x, w))


def product_of_every_other(x: torch.Tensor, y: torch.Tensor) -> Any:
    return x[:, ::2] @ y


def complex_view(x: torch.Tensor) -> Any:
    return torch.view_as_complex(x.transpose(0, 1)).abs() + 1


def bag(x: torch.Tensor, rows: torch.Tensor) -> Any:
    return torch.nn.functional.embedding_bag(rows, x.t())


def convolution(x: torch.Tensor, w: torch.Tensor) -> Any:
    return torch.conv2d(x.transpose(2, 3), w)


def strided_again(x: torch.Tensor, w: torch.Tensor) -> Any:
    return torch.as_strided(torch.conv2d(x, w), (4, 6), (36, 6)) + 1


def strided_again_under_a_view(x: torch.Tensor, w: torch.Tensor) -> Any:
    return torch.as_strided(torch.conv2d(x, w).permute(0, 2, 3, 1), (4, 6), (36, 6)) + 1


def concatenated_twice(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = torch.cat([x * 2, y * 3])
    return torch.cat([y * 2, z]), z


def concatenated_result(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.cat([torch.sort(x)[0], y * 2])


def concatenated_transposed(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.cat([(x @ y).t(), y * 2])


def made_for_each_reader(x: torch.Tensor) -> Any:
    y = x.t().contiguous()
    return ops.dense(y), ops.dense(y)


def loop(x: torch.Tensor, w: torch.Tensor) -> Any:
    return while_loop(
        lambda i, y: i < 5,
        lambda i, y: (i + 1, torch.conv2d(y, w, padding=1)),
        (torch.zeros((), dtype=int), x),
    )


@torch.compiler.nested_compile_region
def _region(y: torch.Tensor) -> torch.Tensor:
    return y.sin() + y.cos().mean()


def region(x: torch.Tensor, w: torch.Tensor) -> Any:
    return _region(x[..., :6, :6] * 2), _region(torch.conv2d(x, w))


_KERNEL = torch.rand(4, 4, 3, 3)
_IMAGE = torch.rand(1, 4, 8, 8)
_SQUARE = torch.rand(8, 8)
_WEIGHT = ("aten::convolution.weight", 576, "strides")

PLANTED = {
    "contiguous": Planted(demanded, (_SQUARE,), [("copying::dense.x", 256, "strides")]),
    "contiguous, computed": Planted(demanded_of_computed, (_SQUARE,), [("copying::dense.x", 256, "strides")]),
    "contiguous, one of two": Planted(
        demanded_of_one, (_SQUARE, torch.rand(8, 8)), [("copying::pair.x", 256, "strides")]
    ),
    "contiguous, in a list": Planted(
        demanded_of_a_list, (_SQUARE, torch.rand(8, 8)), [("copying::parts.xs[1]", 256, "strides")]
    ),
    "contiguous, expanded": Planted(
        demanded_of_expanded, (torch.rand(1, 8),), [("copying::dense.x", 256, "strides")]
    ),
    "as traced": Planted(
        traced_strides,
        (_IMAGE, _KERNEL),
        [("aten::convolution.input", 1024, "strides"), ("copying::same.x", 576, "strides"), _WEIGHT],
    ),
    "no unit stride": Planted(
        product_of_every_other, (torch.rand(8, 16), _SQUARE), [("aten::mm.self", 256, "strides")]
    ),
    "complex": Planted(complex_view, (torch.rand(4, 3, 2),), [("aten::view_as_complex.self", 96, "strides")]),
    "a bag of rows": Planted(
        bag,
        (torch.rand(8, 4), torch.tensor([[0, 1], [1, 2]])),
        [("aten::_embedding_bag_forward_only.weight", 128, "strides")],
    ),
    "convolution": Planted(
        convolution,
        (_IMAGE, _KERNEL),
        [("aten::convolution.input", 1024, "strides"), ("aten::convolution.output", 576, "output"), _WEIGHT],
    ),
    "strided again": Planted(
        strided_again,
        (_IMAGE, _KERNEL),
        [("aten::convolution.input", 1024, "strides"), ("aten::convolution.output", 576, "readers"), _WEIGHT],
    ),
    "a view strided again": Planted(
        strided_again_under_a_view,
        (_IMAGE, _KERNEL),
        [("aten::convolution.input", 1024, "strides"), ("aten::permute.output", 576, "readers"), _WEIGHT],
    ),
    "concatenated twice": Planted(
        concatenated_twice, (torch.rand(4, 8), torch.rand(4, 8)), [("aten::cat.tensors[1]", 256, "concat")]
    ),
    "result concatenated": Planted(
        concatenated_result, (torch.rand(4, 8), torch.rand(4, 8)), [("aten::cat.tensors[0]", 128, "concat")]
    ),
    "transposed, concatenated": Planted(
        concatenated_transposed, (_SQUARE, torch.rand(8, 8)), [("aten::cat.tensors[0]", 256, "concat")]
    ),
    "made for each reader": Planted(made_for_each_reader, (_SQUARE,), [("copying::dense.x", 256, "again")]),
    "loop": Planted(
        loop,
        (_IMAGE, _KERNEL),
        [("aten::convolution.input", 1024, "strides"), ("while_loop.output", 1024, "loop"), _WEIGHT],
    ),
    "subgraph": Planted(
        region,
        (_IMAGE, _KERNEL),
        [
            ("aten::convolution.input", 1024, "strides"),
            ("invoke_subgraph.operands[0]", 576, "subgraph"),
            _WEIGHT,
        ],
    ),
}
