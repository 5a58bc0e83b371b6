"""A graph and its inputs as a program of Python that builds them."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .. import _torch
from ..errors import ReinplaceError
from ..graph.copy import all_graphs
from ..ops.schema import is_operator
from ..ops.source import where
from .execution import address, stored_bytes

_MANY = 256  # elements from which on numbers are packed
_MOST = 4 << 20  # bytes of a program's numbers
_PLAIN = (torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


_OWN = frozenset(  # the namespaces of torch's own operators
    (
        *("aten", "prims", "prim", "inductor", "_inductor_test", "inductor_prims", "_c10d_functional"),
        *("higher_order", "profiler", "debugprims", "quantized", "quantized_decomposed", "mkldnn", "mkl"),
        *("onednn", "rngprims", "streams", "torch_attn"),
    )
)


class UnprintableError(ReinplaceError):
    """A graph holds something that has no name in a program."""


def graph_lines(gm: GraphModule, name: str = "graph") -> Iterator[str]:
    """Yield a function ``name()`` that builds a graph.

    Raises:
        UnprintableError: names what it cannot write down.
    """
    yield f"def {name}():"
    yield "    graph, owned = torch.fx.Graph(), {}"
    seen: set[str] = set()
    for node in gm.graph.nodes:
        if node.op == "get_attr" and node.target not in seen:
            seen.add(node.target)
            yield f"    owned[{node.target!r}] = {_owned(gm, node.target, name)}"
        yield f"    {_line(node)}"
    yield "    return torch.fx.GraphModule(owned, graph)"
    for node in gm.graph.find_nodes(op="get_attr"):
        value = getattr(gm, str(node.target), None)
        if isinstance(value, GraphModule) and node.target in seen:
            seen.discard(node.target)
            yield ""
            yield ""
            yield from graph_lines(value, f"{name}_{node.target}")


def _owned(gm: GraphModule, target: Any, name: str) -> str:
    value = getattr(gm, str(target), None)
    if isinstance(value, GraphModule):
        return f"{name}_{target}()"
    if isinstance(value, torch.Tensor):
        return _storage(value) + _view(value)
    raise UnprintableError(f"the graph takes {target} from its module, which is {type(value).__name__}")


def _line(node: Node) -> str:
    source = where(node)
    remark = f"  # {source}" if source else ""
    if node.op == "placeholder":
        return f"{node.name} = graph.placeholder({node.name!r})"
    if node.op == "get_attr":
        return f"{node.name} = graph.get_attr({node.target!r})"
    if node.op == "output":
        return f"graph.output({literal(node.args[0])})"
    kwargs = f", {literal(dict(node.kwargs))}" if node.kwargs else ""
    call = f"{literal(node.target)}, {literal(tuple(node.args))}{kwargs}"
    return f"{node.name} = graph.call_function({call}){remark}"


def literal(value: Any) -> str:
    """Return a value as an expression.

    Raises:
        UnprintableError: it has none.
    """
    if isinstance(value, Node):
        return value.name
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(k)}: {literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return str(value)
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    return _callable(value)


def _callable(value: Any) -> str:
    if is_operator(value):
        return f"torch.ops.{value}"
    if isinstance(value, _torch.higher_order_operator()):
        if "triton" in value.name():
            raise UnprintableError("a user Triton kernel has no name outside the process that compiled it")
        return f"torch.ops.higher_order.{value.name()}"
    module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
    if module in ("_operator", "math") and name:
        return f"{module.removeprefix('_')}.{name}"
    raise UnprintableError(f"{value!r} has no name in a program")


def input_lines(inputs: Sequence[Any]) -> Iterator[str]:
    """Yield a function ``inputs()`` that makes the inputs, with the storages that they share.

    Raises:
        UnprintableError: they are too large.
    """
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    storages: dict[int, str] = {}
    yield "def inputs():"
    for tensor in tensors:
        if address(tensor) not in storages:
            storages[address(tensor)] = f"storage_{len(storages)}"
            yield f"    {storages[address(tensor)]} = {_storage(tensor)}"
    made = [
        storages[address(value)] + _view(value) if isinstance(value, torch.Tensor) else literal(value)
        for value in inputs
    ]
    yield f"    return [{', '.join(made)}]"


def _storage(tensor: torch.Tensor) -> str:
    """Return an expression for the whole storage of a tensor, one-dimensional and of its dtype."""
    raw = stored_bytes(tensor).cpu()
    if raw.numel() > _MOST:
        raise UnprintableError(f"an input of {raw.numel()} bytes is too large to be written down")
    size = tensor.element_size()
    flat = raw[: raw.numel() // size * size].view(tensor.dtype)
    device = f", device={str(tensor.device)!r}" if tensor.device.type != "cpu" else ""
    if tensor.dtype in _PLAIN and flat.numel() <= _MANY and bool(torch.isfinite(flat).all()):
        return f"torch.tensor({flat.tolist()}, dtype={tensor.dtype}{device})"
    packed = base64.b85encode(zlib.compress(bytes(raw.tolist()))).decode()
    data = f"bytearray(zlib.decompress(base64.b85decode({packed!r})))"
    to = f".to({str(tensor.device)!r})" if device else ""
    return f"torch.frombuffer({data}, dtype={tensor.dtype}){to}"


def _view(tensor: torch.Tensor) -> str:
    layout = f"{tuple(tensor.size())}, {tuple(tensor.stride())}, {tensor.storage_offset()}"
    return f".as_strided({layout})"


def registering_files(gm: GraphModule) -> dict[str, str | None]:
    """Return, for each operator that is not torch's own, the file that registers it, where that is known."""
    found: dict[str, str | None] = {}
    for graph in all_graphs(gm):
        for node in graph.graph.nodes:
            for value in (node.target, *node.args[:2]):
                if is_operator(value):
                    name = value.name().partition(".")[0]
                    if _is_users(value):
                        found[name] = _torch.registering_file(name)
    return dict(sorted(found.items()))


def _is_users(op: Any) -> bool:
    """Return whether an operator is none of torch's own."""
    return str(op.name()).partition("::")[0] not in _OWN
