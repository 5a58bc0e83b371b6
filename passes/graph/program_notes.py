"""What a program says of a call that writes, and its functional form no longer does.

*What is given twice.* Where a program passes one tensor, whole or as views, to read and to write, eager's
meaning counts: the call sees what it writes. Its functional form looks like that of ``y = x.clone();
write_(x, y)`` once somebody has dropped the copy, and there the call must not.

*Real views.* ``write_(c.real)`` becomes a wrapper with the strides of real numbers, of a complex base.

*Places.* A wrapper names a part of an input by strides and an offset into a storage. Of an input that begins
inside its storage, or has gaps, that is this storage where the part was taken before a store into it, and may
be another one after.

In the graph that Dynamo traced fake tensors share memory as the program's do. So it is noted there, and the
notes travel with the nodes through AOTAutograd. Fake tensors are looked at when all is traced: where a
program gives a tensor other memory (``set_``, ``as_strided_``), earlier calls saw the memory before, and
nothing is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.fx import Graph, Node

from .. import _torch
from ..memory.geometry import Geometry
from ..memory.region import Size, as_size, by_stride
from ..ops.nested import LISTS
from ..ops.schema import is_operator, schema_of, target_name
from ..ops.true_strides import has_usual_strides
from ..ops.wrapper import called
from ..ops.wrapper_names import NAMES, calls_of

_TRAVELS = "custom"  # the entry of ``Node.meta`` that everybody hands on
_KEY = "pytest_reinplace"
_MARK = "as_noted"
_Layout = tuple[tuple[Size, ...], tuple[Size, ...]]  # sizes and strides
_Place = tuple[Size, _Layout, _Layout]  # how many elements of an input lie before a part, the part, the input


def note(graph: Graph) -> None:
    """Note, in a graph as Dynamo traced it, what each call is given."""
    for node in () if any(map(_gives_memory, graph.nodes)) else graph.nodes:
        op, named = _arguments(node) if node.op == "call_function" else ("", {})
        of_storage: dict[int, list[str]] = {}
        real = []
        for name, value in named.items():
            tensor: Any = value.meta.get("example_value") if isinstance(value, Node) else None
            key = _torch.storage_key(tensor) if isinstance(tensor, torch.Tensor) else None
            if key is not None:
                of_storage.setdefault(key, []).append(name)
                real += [name] if _torch.is_real_view(tensor) else []
        shared = [names for names in of_storage.values() if len(names) > 1]
        places = dict(_places(named))
        if shared or real or places:
            noted = {"call": op, "shared": shared, "real": real, "places": places}
            node.meta[_TRAVELS] = {**node.meta.get(_TRAVELS, {}), _KEY: noted}


def tell(graph: Graph) -> None:
    """Let the names of wrappers tell: Inductor's caches know a graph by its text, which has no notes."""
    wrappers = [node for name in NAMES for node in calls_of(graph, name)]
    for node in [n for n in wrappers if _changes_meaning(n) and _MARK not in n.name]:
        with graph.inserting_before(node):
            name = f"{node.name}_{_MARK}"
            told = graph.create_node(node.op, node.target, node.args, node.kwargs, name=name)
        told.meta = dict(node.meta)
        node.replace_all_uses_with(told)
        graph.erase_node(node)


def is_one_tensor(node: Node, names: Iterable[str]) -> bool:
    """Return whether the program gave a call one tensor for all of these arguments."""
    return _MARK in node.name and any(set(names).issubset(one) for one in _noted(node).get("shared", ()))


def real_views(node: Node) -> frozenset[str]:
    """Return the arguments of a call for which the program gave it real views of complex tensors."""
    return frozenset(_noted(node).get("real", ()))


def place(node: Node, label: str, base: torch.Tensor) -> tuple[Size, tuple[Size, ...]] | None:
    """Return how many elements of its base lie before an argument, and its strides; ``None`` if not noted.

    A value that was stored over an input with gaps has none: what was noted is counted anew.
    """
    found: _Place | None = _noted(node).get("places", {}).get(label)
    if found is None:
        return None
    before, part, layout = found
    now = _layout(base)
    return (
        (before, part[1])
        if layout == now
        else _counted_anew(before, part, layout, now, _torch.fake_mode_of([base]))
    )


def _counted_anew(
    before: Any, part: Any, layout: Any, now: Any, mode: Any
) -> tuple[Size, tuple[Size, ...]] | None:
    """Return where a part lies in a tensor that has other strides by now, where all is known."""
    (sizes, strides), geometry = layout, Geometry(getattr(mode, "shape_env", None))
    numbers = [before, *part[0], *part[1], *layout[0], *layout[1], *now[1]]
    if sizes != now[0] or any(isinstance(n, int) and n < 0 for n in numbers):
        return None
    axes = [(d, s) for d, s in enumerate(strides) if s != 0]
    order = [d for d, _ in by_stride(axes)]
    steps = [geometry.digits(n, [strides[d] for d in order]) for n in (before, *part[1])]
    if any(found is None for found in steps):
        return None
    first, *each = [list(found or ()) for found in steps]
    last = list(first)
    for n, of_dim in zip(part[0], each, strict=True):
        last = [place + (n - 1) * k for place, k in zip(last, of_dim, strict=True)]
    if not all(geometry.at_most(place + 1, sizes[d]) for d, place in zip(order, last, strict=True)):
        return None  # it goes beyond the end of a row
    new = [sum(k * now[1][d] for d, k in zip(order, s, strict=True)) for s in (first, *each)]
    return new[0], tuple(new[1:])


def _layout(tensor: torch.Tensor) -> _Layout:
    return tuple(map(as_size, tensor.shape)), tuple(map(as_size, tensor.stride()))


def _places(named: Mapping[str, Any]) -> Iterator[tuple[str, _Place]]:
    """Yield where the arguments of a call lie in inputs that begin inside their storage, or have gaps."""
    for name, value in named.items():
        is_list = isinstance(value, LISTS)
        items = [(f"{name}[{i}]", v) for i, v in enumerate(value)] if is_list else [(name, value)]
        for label, item in items:
            part: Any = item.meta.get("example_value") if isinstance(item, Node) else None
            base = _input_of(item) if isinstance(part, torch.Tensor) else None
            begin = 0 if base is None else as_size(base.storage_offset())
            is_row_by_row = base is None or (begin == 0 and has_usual_strides(base))
            if base is not None and not is_row_by_row and base.dtype == part.dtype:
                yield label, (as_size(part.storage_offset()) - begin, _layout(part), _layout(base))


def _input_of(node: Node) -> torch.Tensor | None:
    """Return the input that a tensor is a view of, in Dynamo's graph; ``None`` where it is computed."""
    key = _torch.storage_key(node.meta["example_value"])
    while node.op != "placeholder":
        source = node.args[0] if node.args else None
        if not isinstance(source, Node):
            return None
        node = source
    found = node.meta.get("example_value")
    is_view = isinstance(found, torch.Tensor) and key is not None and _torch.storage_key(found) == key
    return found if is_view else None


def _changes_meaning(node: Node) -> bool:
    noted = _noted(node)
    return bool(noted and (noted["shared"] or noted["real"]))


def _gives_memory(node: Node) -> bool:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return node.op.startswith("call") and ("set_" in name or name.partition(".")[0] == "as_strided_")


def _noted(node: Node) -> dict[str, Any]:
    """Return the notes of a call; what a composite operator calls inside is another one."""
    noted = node.meta.get(_TRAVELS, {}).get(_KEY)
    return noted if noted and noted["call"] == called(node) else {}


def _arguments(node: Node) -> tuple[str, Mapping[str, Any]]:
    """Return the name of what Dynamo's graph calls, if it may write, and its arguments by their names."""
    if node.target is _torch.hop("triton_kernel_wrapper_mutation"):
        named: Any = node.kwargs
        return _torch.triton_kernel_name(named["kernel_idx"]), named["kwargs"]
    op: Any = node.target
    if isinstance(op, _torch.op_overload_packet()):
        overloads = op.overloads()
        op = getattr(op, overloads[0]) if len(overloads) == 1 else None
    if not is_operator(op) or not schema_of(op).mutable:
        return "", {}
    return target_name(op), dict(zip(schema_of(op).names, node.args, strict=False)) | dict(node.kwargs)
