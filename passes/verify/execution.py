"""Running a graph, node by node, on tensors of its own: what the contract's checks stand on."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from .. import _torch
from ..errors import ReinplaceError
from .collectives import InFlight

Observer = Callable[[Node, Any], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Manner:
    """How a graph is run.

    Args:
        around: called with each node that computes and with what evaluates it; returns the node's value.
        imitate: whether collectives are imitated although there is a process group.
    """

    around: Callable[[Node, Callable[[], Any]], Any] | None = None
    imitate: bool = False


PLAIN = Manner()


class RunError(ReinplaceError):
    """A node of the graph raised while it ran; ``node`` is that node."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = node


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield ``(path, leaf)`` of nested lists, tuples and dicts; a path looks like ``"[0][1]"``."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]")
    else:
        yield path, value


def address(tensor: torch.Tensor) -> int:
    """Return where the tensor's storage begins, 0 for a storage without bytes."""
    return int(tensor.untyped_storage().data_ptr())


def stored_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return the whole storage of a tensor as bytes."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def cloned(values: Sequence[Any]) -> list[Any]:
    """Copy tensors so that strides, offsets, the bytes around them and what they share stay as they were.

    Tensors that share a storage share one afterwards, views of one base are views of its copy, and what
    is twice the same object is so afterwards. What is no tensor is handed on.

    Raises:
        ReinplaceError: a fake or meta tensor, which has no bytes to run on.
    """
    copier = _Copier()
    return [copier.copied(v) if isinstance(v, torch.Tensor) else v for v in values]


class _Copier:
    def __init__(self) -> None:
        self._storages: dict[int, torch.UntypedStorage] = {}
        # An original is kept beside its copy, or its id could come to mean another tensor.
        self._tensors: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def copied(self, tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in self._tensors:
            self._tensors[id(tensor)] = (tensor, self._copied(tensor))
        return self._tensors[id(tensor)][1]

    def _copied(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_meta or _torch.fake_mode_of([tensor]) is not None:
            raise ReinplaceError(
                f"expected real tensors as example inputs, got a {type(tensor).__name__} of shape "
                f"{tuple(tensor.shape)}; pass tensors with data, for example from torch.randn"
            )
        if tensor.layout != torch.strided:
            return tensor.detach().clone()
        base = tensor._base
        if base is not None and base.dtype == tensor.dtype and base.is_conj() == tensor.is_conj():
            with torch.no_grad():
                mine = self.copied(base)
                return mine.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
        copy = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        copy.set_(self._storage(tensor), tensor.storage_offset(), tensor.size(), tensor.stride())
        return copy.conj() if tensor.is_conj() else copy

    def _storage(self, tensor: torch.Tensor) -> torch.UntypedStorage:
        key = address(tensor)
        storage = self._storages.get(key) if key else None
        if storage is None:
            storage = self._storages[key] = tensor.untyped_storage().clone()
        return storage


@contextlib.contextmanager
def same_randomness(inputs: Sequence[Any]) -> Iterator[None]:
    """Let random operators draw from one seed inside, on the devices of these tensors; undone afterwards."""
    devices = {t.device.index or 0 for t in inputs if isinstance(t, torch.Tensor) and t.is_cuda}
    with torch.random.fork_rng(devices=sorted(devices)):
        torch.manual_seed(0)
        yield


def attributes(gm: GraphModule) -> dict[str, torch.Tensor]:
    """Return the tensors that the graph takes from its module (``get_attr``), by name."""
    found: dict[str, torch.Tensor] = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            value = _attribute(gm, str(node.target))
            if isinstance(value, torch.Tensor):
                found[str(node.target)] = value
    return found


def _attribute(gm: GraphModule, target: str) -> Any:
    value: Any = gm
    for part in target.split("."):
        value = getattr(value, part)
    return value


def run(
    gm: GraphModule,
    inputs: Sequence[Any],
    attrs: dict[str, torch.Tensor] | None = None,
    observer: Observer | None = None,
    manner: Manner = PLAIN,
) -> Any:
    """Run a graph on ``inputs``, which it may write into, and return what its output node holds.

    A wrapper with ``meta["only_clone_these_tensors"]`` (what Inductor's reinplacing leaves for its
    decomposition) clones only those. Memory that an ``empty`` operator hands out holds a fixed pattern,
    so that two runs agree. Collectives without a process group are imitated (``collectives.py``). Values are
    dropped after their last use.

    Args:
        gm: the graph.
        inputs: one value per placeholder.
        attrs: tensors that stand in for the module's own (``get_attr``), by name.
        observer: called with each node and its value when that is made.
        manner: what is done around each node.

    Raises:
        RunError: a node raised; the original error is the cause.
    """
    env: dict[Node, Any] = {}
    given, in_flight = iter(inputs), InFlight(always=manner.imitate)
    dying = _last_uses(gm)
    with torch.no_grad():
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                env[node] = _next(given, node)
            elif node.op == "output":
                return map_arg(node.args[0], env.__getitem__)
            else:
                evaluate = functools.partial(_evaluated, gm, node, env, attrs or {}, in_flight)
                env[node] = evaluate() if manner.around is None else manner.around(node, evaluate)
            if observer is not None:
                observer(node, env[node])
            for dead in dying.get(node, ()):
                del env[dead]
    return None


def _next(given: Iterator[Any], node: Node) -> Any:
    try:
        return next(given)
    except StopIteration:
        raise ReinplaceError(
            f"expected one example input per placeholder, got none for {node.name}"
        ) from None


def _last_uses(gm: GraphModule) -> dict[Node, list[Node]]:
    dying: dict[Node, list[Node]] = collections.defaultdict(list)
    seen: set[Node] = set()
    for node in reversed(gm.graph.nodes):
        for used in (*node.all_input_nodes, node):
            if used not in seen:
                seen.add(used)
                dying[node].append(used)
    return dying


def _evaluated(
    gm: GraphModule, node: Node, env: dict[Node, Any], attrs: dict[str, torch.Tensor], in_flight: InFlight
) -> Any:
    if node.op == "get_attr":
        name = str(node.target)
        return attrs[name] if name in attrs else _attribute(gm, name)
    args = map_arg(node.args, env.__getitem__)
    kwargs = dict(map_arg(node.kwargs, env.__getitem__))
    kwargs.update(_kept_clones(node))
    try:
        if in_flight.imitates(node.target):
            return in_flight.call(node.target, args, kwargs)
        result = _called(gm, node, args, kwargs)
    except Exception as error:
        raise RunError(f"{node.format_node()}: {type(error).__name__}: {error}", node) from error
    if getattr(node.target, "namespace", "") == "aten" and "empty" in str(node.target):
        _fill(result)
    return result


def _called(gm: GraphModule, node: Node, args: Any, kwargs: dict[str, Any]) -> Any:
    if node.op == "call_module":
        return gm.get_submodule(str(node.target))(*args, **kwargs)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    if str(node.target) == "prims._unsafe_index_put_.default":
        # Run eagerly, torch's prim applies the write twice, which doubles what it accumulates.
        return torch.ops.aten.index_put_.default(*args, **kwargs)
    return node.target(*args, **kwargs)  # type: ignore[operator]


def _kept_clones(node: Node) -> dict[str, Any]:
    kept = node.meta.get("only_clone_these_tensors")
    if kept is None:
        return {}
    if node.target is _torch.hop("auto_functionalized"):
        return {"_only_clone_these_tensors": tuple(kept)}
    if node.target is _torch.hop("auto_functionalized_v2"):
        return {"_only_clone_these_bases": tuple(kept)}
    return {}


def _fill(value: Any) -> None:
    """Fill fresh memory with a pattern that no sensible program computes with."""
    for _, leaf in leaves(value):
        if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and leaf.numel():
            pattern = 1 if leaf.dtype == torch.bool else 0x5A
            stored_bytes(leaf).fill_(pattern)
