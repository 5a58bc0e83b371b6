"""Whether fake tensors lie about strides, asked with the inputs that torch tests its operators with.

``test_told.py`` calls what it can call by the schema; these reach the operators that take more than tensors,
and those that only a backward pass calls, each in the layouts that nobody made the sample in.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

from pytest_reinplace.passes.ops.true_strides import may_be_mistold

from .test_true_strides import results

Tensor = torch.Tensor
Call = tuple[tuple[Any, ...], dict[str, Any]]

_SAMPLES, _CALLS, _LARGEST = 6, 4, 5000  # of an entry, of an operator, and elements of an argument

# Its kernel ends the process when it is given what is not contiguous (torch 2.11 to 2.15).
_CRASHES = frozenset({"aten.adaptive_max_pool3d_backward.default"})


class Calls(TorchDispatchMode):  # type: ignore[misc]
    """Records a few calls of each functional operator, of which no two have arguments of the same ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[Any, dict[tuple[int, ...], Call]] = {}

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = args, kwargs or {}
        tensors = tensors_in(call)
        if op.namespace == "aten" and not any(a.alias_info for a in op._schema.arguments) and tensors:
            mine, key = self.of.setdefault(op, {}), tuple(t.dim() for t in tensors)
            if len(mine) < _CALLS and key not in mine and all(t.numel() < _LARGEST for t in tensors):
                mine[key] = tree_map_only(Tensor, dense, call)
        return op(*args, **call[1])


def tensors_in(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def dense(t: Tensor) -> Tensor:
    return t.detach().clone(memory_format=torch.contiguous_format)


def recorded() -> dict[Any, dict[tuple[int, ...], Call]]:
    """Call everything that torch has samples for, forwards and backwards."""
    samples = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    calls = Calls()
    for entry in samples.op_db:
        kinds = [
            d for d in (torch.float32, torch.complex64, torch.int64) if d in entry.supported_dtypes("cpu")
        ]
        for dtype in kinds[:1]:
            by_grad = dtype == torch.float32 and entry.supports_autograd
            with contextlib.suppress(Exception):  # a few entries need what is not installed
                given = list(
                    itertools.islice(entry.sample_inputs("cpu", dtype, requires_grad=by_grad), _SAMPLES)
                )
                for one in given:
                    with contextlib.suppress(Exception), calls:
                        _run(entry, one)
    return calls.of


def _run(entry: Any, sample: Any) -> None:
    made = [t for t in tensors_in(entry(sample.input, *sample.args, **sample.kwargs)) if t.requires_grad]
    if made:
        torch.autograd.backward([t.real.sum() if t.is_complex() else t.sum() for t in made])


def turned(t: Tensor, *dims: int) -> Tensor:
    """Return the same tensor laid out in another order of dimensions."""
    return t.permute(dims).contiguous().permute([dims.index(d) for d in range(t.dim())])


def channels_last(t: Tensor) -> Tensor:
    return turned(t, 0, *range(2, t.dim()), 1) if t.dim() > 2 else t


def columns(t: Tensor) -> Tensor:
    return turned(t, *range(t.dim() - 2), t.dim() - 1, t.dim() - 2) if t.dim() > 1 else t


def gaps(t: Tensor) -> Tensor:
    if not t.dim() or not t.numel():
        return t
    # Some kernels read what lies in the gaps (aten._embedding_bag): it must be an index that exists.
    wide = t.new_zeros([*t.shape[:-1], 2 * t.shape[-1]])
    wide[..., ::2] = t
    return wide[..., ::2]


LAYOUTS: tuple[Callable[[Tensor], Tensor], ...] = (
    *(channels_last, columns, gaps),
    lambda t: turned(t, *reversed(range(t.dim()))),
)


def relaid(call: Call) -> Iterator[Call]:
    """Yield a call with all tensors in another layout, and with each of them by itself."""
    flat, spec = tree_flatten(call)
    places = [i for i, value in enumerate(flat) if isinstance(value, Tensor)]
    for layout in LAYOUTS:
        for mine in [places, *([i] for i in places if len(places) > 1)]:
            yield tree_unflatten([layout(v) if i in mine else v for i, v in enumerate(flat)], spec)


def lies(op: Any, calls: dict[tuple[int, ...], Call]) -> bool:
    """Return whether some result has other strides than its fake tensor; not those of dimensions of one."""
    pairs = results(op, (again for call in calls.values() for again in relaid(call)))
    return any(
        any(s != t for s, t, n in zip(a.stride(), b.stride(), a.shape, strict=True) if n > 1)
        for a, b in pairs
    )


@pytest.mark.filterwarnings("ignore")
def test_whoever_lies_about_the_strides_of_torchs_samples_is_listed() -> None:
    calls = recorded()
    found = [op for op, mine in calls.items() if str(op) not in _CRASHES and lies(op, mine)]
    assert (
        len(calls) > 400 and torch.ops.aten.native_layer_norm_backward.default in found
    )  # or little was called
    assert [str(op) for op in found if not may_be_mistold(op)] == []
