"""What a program says of a call that writes, and its functional form no longer does.

*What is given twice.* Where a program passes one tensor, whole or as views, to read and to write, eager's
meaning counts: the call sees what it writes. Its functional form looks like that of ``y = x.clone();
write_(x, y)`` once somebody has dropped the copy, and there the call must not.

*Real views.* ``write_(c.real)`` becomes a wrapper with the strides of real numbers, of a complex base.

*Places.* A wrapper names a part of an input by an offset into a storage. Of an input that begins inside its
storage that is this storage where the part was taken before a store into it, and may be another one after.

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
from ..memory.region import Size, as_size
from ..ops.nested import LISTS
from ..ops.schema import is_operator, schema_of, target_name
from ..ops.wrapper import called
from ..ops.wrapper_names import NAMES

_TRAVELS = "custom"  # the entry of ``Node.meta`` that everybody hands on
_KEY = "pytest_reinplace"
_MARK = "as_noted"
_Place = tuple[Size, tuple[Size, ...]]  # how many elements of an input lie before, and the sizes of that


def note(graph: Graph) -> None:
    """Note, in a graph as Dynamo traced it, what each call is given."""
    inputs = _inputs_inside(graph)
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
        places = dict(_places(named, inputs)) if inputs else {}
        if shared or real or places:
            noted = {"call": op, "shared": shared, "real": real, "places": places}
            node.meta[_TRAVELS] = {**node.meta.get(_TRAVELS, {}), _KEY: noted}


def tell(graph: Graph) -> None:
    """Let the names of wrappers tell: Inductor's caches know a graph by its text, which has no notes."""
    wrappers = [n for name in NAMES for n in graph.find_nodes(op="call_function", target=_torch.hop(name))]
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


def place(node: Node, label: str, base: torch.Tensor) -> Size | None:
    """Return how many elements of its base lie before an argument; ``None`` where that was not noted."""
    before, sizes = _noted(node).get("places", {}).get(label, (None, ()))
    return before if sizes == tuple(map(as_size, base.shape)) else None


def _inputs_inside(graph: Graph) -> dict[int, torch.Tensor]:
    """Return the inputs that begin inside their storages, which they have for themselves, by those."""
    found: dict[int, list[torch.Tensor]] = {}
    for node in graph.find_nodes(op="placeholder"):
        tensor: Any = node.meta.get("example_value")
        key = _torch.storage_key(tensor) if isinstance(tensor, torch.Tensor) else None
        if key is not None:
            found.setdefault(key, []).append(tensor)
    alone = {key: tensors[0] for key, tensors in found.items() if len(tensors) == 1}
    return {key: tensor for key, tensor in alone.items() if as_size(tensor.storage_offset()) != 0}


def _places(named: Mapping[str, Any], inputs: dict[int, torch.Tensor]) -> Iterator[tuple[str, _Place]]:
    """Yield where the arguments of a call lie in inputs."""
    for name, value in named.items():
        is_list = isinstance(value, LISTS)
        items = [(f"{name}[{i}]", v) for i, v in enumerate(value)] if is_list else [(name, value)]
        for label, item in items:
            part: Any = item.meta.get("example_value") if isinstance(item, Node) else None
            base = inputs.get(_torch.storage_key(part) or 0) if isinstance(part, torch.Tensor) else None
            if base is not None and base.dtype == part.dtype:
                before = as_size(part.storage_offset()) - as_size(base.storage_offset())
                yield label, (before, tuple(map(as_size, base.shape)))


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
