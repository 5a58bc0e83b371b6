"""For each defect that we defend against, a program that is wrong, or holds more, without the defence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from ..trace import arange, ops

Tensor = torch.Tensor
N = 96


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """What is compiled, forward, and backward where an input asks for a gradient.

    Args:
        function: in terms of its inputs, which it may write.
        inputs: makes them.
        options: of Inductor's, beside ours.
        dynamic: whether it is compiled for all sizes.
        undecided: whether nothing is put in place, so that wrappers stay.
        earlier: makes those of a call before, for which it is compiled.
        hidden_by: other defences, with which nobody sees whether there is this one.
        attempts: whether it is lowered in as many attempts as it takes, as programs of users are.
        most: the bytes that a run of it holds at once at most, where it is right.
    """

    function: Callable[..., Any]
    inputs: Callable[[], tuple[Tensor, ...]]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    dynamic: bool = False
    undecided: bool = False
    earlier: Callable[[], tuple[Tensor, ...]] | None = None
    hidden_by: tuple[str, ...] = ()
    attempts: bool = False
    most: int | None = None


def inside(count: int = 16) -> Tensor:
    """Return a matrix that begins inside its storage."""
    return arange(64)[8 : 8 + count].view(4, -1)


def rows() -> tuple[Tensor, Tensor]:
    return arange(4, 4), arange(4, 4) + 7


def vectors() -> tuple[Tensor, Tensor]:
    return arange(N), arange(N) + 5


def rows_by_strides(x: Tensor, like: Tensor) -> Tensor:
    k = like.shape[0]
    x[k:].mul_(2)
    return x[k:].as_strided((3,), (2,)).clone()


def slices(x: Tensor) -> None:
    ops.scale(x[:, 1:3], x[:, 5:7])


def spectrum() -> Tensor:
    return arange(64).to(torch.complex64)


def written_part(x: Tensor) -> None:
    ops.scale(x[2:, 1:3], x[0, :2].clone())


def stored_then_scaled(x: Tensor) -> None:
    x[0] = 7.0
    ops.scale(x[1:2, :2], x[2:3, 2:4].clone())


def written_part_of_a_part(x: Tensor, by: Tensor) -> Tensor:
    ops.scale(x[1:][1:, 1], by[0, :2])
    return x + 1


def viewed_then_stored(x: Tensor) -> None:
    row = x[1]
    x.mul_(3)
    ops.scale(row, x[0].clone())


def real_part(x: Tensor) -> Tensor:
    new = torch.complex(x, -x)
    ops.scale(new.real[1:3], x[:2])
    return new


def widened_part(x: Tensor) -> Tensor:
    return x[1:5].clone().view(torch.int64) * 2


def two_clones(x: Tensor) -> tuple[Tensor, Tensor]:
    new = x + 1
    return new.clone(), new.clone()


def added_in_part(x: Tensor, y: Tensor) -> Tensor:
    return torch.add(y, x @ x, alpha=2)


def lists_apart(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch._foreach_sub([x, y], [y, x], alpha=2))


def returned_beside_the_whole(x: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    part = (w @ v).softmax(-1) + w
    whole = torch.cat([part, x])
    return part[:1], whole


def copied_then_written(x: Tensor, y: Tensor) -> None:
    part = x.split(4)[0]
    y.copy_(part)
    x.add_(1)


def read_then_written(x: Tensor, state: Tensor) -> Tensor:
    result = x * (state * 2)
    with torch.no_grad():
        state.add_(1)
    return result


def two_written(x: Tensor, y: Tensor) -> Tensor:
    old = x + y
    ops.some([x, y], None)
    return old + x + y


def behind_a_dtype_view(x: Tensor, v: Tensor) -> Tensor:
    ops.scale(x[1:3].view(torch.int16), v)
    x[2:4] = 1.0
    return x.sum(1)


@torch.compiler.nested_compile_region
def region(a: Tensor) -> Tensor:
    a.add_(1)
    return a * 2


def regions(x: Tensor) -> tuple[Tensor, ...]:
    y = x * 2
    return y, region(y), region(y)


def old_beside_new(x: Tensor, by: Tensor) -> Tensor:
    earlier = x * 2
    ops.scale(x[0], by[0])
    return earlier + 1


def through_two_arguments(x: Tensor) -> Tensor:
    y = x + 1
    ops.both(y, y)
    return y * 2 + x


def viewed_then_scaled(x: Tensor, w: Tensor, by: Tensor) -> Tensor:
    x[0:5] = w - x[:, 2:3][..., 0]
    plus = x[:, :3] + 1
    ops.scale(x, by)
    x[1:5] = x[0:4] * 3
    return plus[:, 1]


def scattered_of_itself(x: Tensor, places: Tensor) -> Tensor:
    return x.scatter_(0, places, x[: len(places)] * 3)


def drawn(x: Tensor) -> tuple[Tensor, ...]:
    y, z = torch.zeros(8), torch.zeros(8)
    y.normal_()
    z.masked_scatter_(torch.arange(8) % 3 == 0, torch.ones(8))
    return y, y * 2 + x, z * 2 + x


def by_strides(x: Tensor) -> Tensor:
    before = torch.as_strided(x, (3,), (2,), 12) * 2
    x.as_strided((3,), (1,), 14).add_(5)
    return before


def put_by_strides(x: Tensor) -> None:
    x.as_strided((3,), (1,), 14).mul_(5)


def strided_part(x: Tensor) -> Tensor:
    return (x * 2)[3:].as_strided((2,), (1,), 1) + 1


def added_by_index(x: Tensor, by: Tensor) -> None:
    x.index_add_(0, torch.tensor([1, 2]), by[:2])


def chances(x: Tensor) -> Tensor:
    h = x * 2
    h.bernoulli_(torch.sigmoid(x))
    return h


def masked(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    ops.scale(y[4:8], w[:4])
    y[w > 20] = 5
    ops.scale(y, w)
    return y, x


def shifted_itself(x: Tensor) -> None:
    x[0] = x[3] * 2
    x[1:4] = x[0:3] + 1


def turned_boxes(x: Tensor) -> None:
    x[:, 1:3] = x.flip(0)[:, 1:3]


def halved_spectra(x: Tensor) -> Tensor:
    for _ in range(6):
        spectrum = torch.fft.rfft(x)
        spectrum[:, 40:].mul_(0.5)
        x = torch.fft.irfft(spectrum)
    return x


def filled_windows(x: Tensor) -> None:
    x[:, 2].unfold(0, 2, 2)[0].fill_(7)


def listed_crosswise(x: Tensor, y: Tensor) -> None:
    torch._foreach_add_([x, y], [y * 3, x * 3])


def complex_windows(x: Tensor, y: Tensor) -> Tensor:
    ops.scale(y[:, 0:7].unfold(0, 2, 2)[0], y[:, 3][:1] * 1)
    return x.clone()


def overlapping() -> tuple[Tensor, Tensor]:
    base = torch.complex(torch.arange(64.0), torch.arange(64.0) + 5)
    return base[0:48].view(6, 8), base[1:49].view(6, 8)


def chosen_after_stores(y: Tensor) -> tuple[Tensor, Tensor]:
    """What is chosen of a buffer that was stored into twice is used in loops of two lengths."""
    y.mul_(2)
    y[1:3] += 2
    chosen = y[1][torch.tensor([0, 1])] * 2
    return (y * chosen[::2]).relu().cos(), chosen[1:]


def all_but_the_last(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    found = (x[:, 0] > 5).nonzero().squeeze(1)
    y.clamp_(max=4)
    return y[:, 0].clone(), found[:-1].sum()


def list_of_one(x: Tensor) -> Tensor:
    return torch._foreach_add([x], 1)[0].sum(0)


def on_gpu(count: int, length: int = 1 << 20) -> tuple[Tensor, ...]:
    return tuple(torch.arange(length, dtype=torch.float32, device="cuda") % (97 + i) for i in range(count))


_V1 = {"enable_auto_functionalized_v2": False}

PROGRAMS: dict[str, Program] = {
    "slices-from-storage": Program(slices, lambda: (inside(32),)),
    "offset-before-a-store": Program(viewed_then_stored, lambda: (inside(),)),
    "real-view-of-complex": Program(real_part, lambda: (arange(4, 4),)),
    "offset-of-a-view": Program(written_part_of_a_part, rows, dynamic=True),
    "offset-after-a-store": Program(stored_then_scaled, lambda: (inside(24),)),
    "late-epilogue": Program(copied_then_written, lambda: (arange(8, 4), arange(4, 4))),
    "widened-items": Program(widened_part, lambda: (torch.arange(6, dtype=torch.int32),)),
    "merged-outputs": Program(two_clones, lambda: (arange(4, 4),)),
    "recomputed-from-written": Program(
        read_then_written, lambda: (arange(4, 4).requires_grad_(), arange(4, 4))
    ),
    "forgotten-factor": Program(added_in_part, rows),
    "forgotten-factor-of-lists": Program(lists_apart, rows),
    "unmarked-wrapper": Program(two_written, rows, _V1, undecided=True, hidden_by=("clone-at-an-offset",)),
    "clone-at-an-offset": Program(
        behind_a_dtype_view, lambda: (arange(4, 4), torch.full((2, 8), 3, dtype=torch.int16)), undecided=True
    ),
    "region-that-writes": Program(regions, lambda: (arange(4),)),
    "spoiled-by-a-kernel": Program(old_beside_new, rows),
    "written-twice": Program(through_two_arguments, lambda: (arange(4, 4),)),
    "viewed-before-written": Program(
        viewed_then_scaled, lambda: (arange(50)[::2].view(5, 5), arange(5, 5), arange(5, 5))
    ),
    "spoiled-by-a-scatter": Program(
        scattered_of_itself, lambda: (torch.arange(41), torch.arange(30) * 7 % 30)
    ),
    "view-in-its-own-copy": Program(turned_boxes, lambda: (arange(4, 6),)),
    "spoiled-by-a-list": Program(listed_crosswise, rows),
    "unseen-write": Program(drawn, lambda: (arange(8),), {"fallback_random": True}),
    "offsets-from-input": Program(by_strides, lambda: (arange(64)[8:32],)),
    "offset-of-a-called-view": Program(
        written_part, lambda: (spectrum()[4:40].view(6, 6),), earlier=lambda: (spectrum()[:36].view(6, 6),)
    ),
    "offset-in-a-copy": Program(put_by_strides, lambda: (arange(64)[8:32],), undecided=True),
    "strides-of-a-view": Program(strided_part, lambda: (arange(24),)),
    "gaps-of-a-scatter": Program(
        rows_by_strides,
        lambda: (arange(35).view(5, 7)[:, 1:6], torch.zeros(1)),
        dynamic=True,
        undecided=True,
    ),
    "refused-kernel": Program(added_by_index, lambda: tuple(x.bfloat16() for x in rows())),
    "chances-as-a-number": Program(chances, lambda: (arange(100, 3),), {"fallback_random": True}),
    "exchanged-buffer": Program(masked, vectors),
    "returned-in-part": Program(
        returned_beside_the_whole,
        lambda: (arange(4, 4), arange(4, 4).requires_grad_(), torch.zeros(4).requires_grad_()),
    ),
    "racing-fusion": Program(shifted_itself, lambda: (arange(4, 6),)),
    "forgotten-order": Program(chosen_after_stores, lambda: (arange(5, 5) / 50,), attempts=True),
    "forgotten-symbol": Program(all_but_the_last, rows),
    "views-by-kernels": Program(complex_windows, overlapping),
    "held-results": Program(halved_spectra, lambda: (arange(64, 256),), most=3 * 64 * 129 * 8),
    "windows-of-a-view": Program(filled_windows, lambda: (torch.arange(32).view(8, 4),)),
    "list-of-one": Program(list_of_one, lambda: on_gpu(1, 64)),
}
