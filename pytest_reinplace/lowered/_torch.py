"""The seam to the private names of torch by which a generated program is found, followed, and run dry."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from ..base._torch import compile_id, private, replaced

_KERNELS = "torch._inductor.async_compile"
_GRAPH = "torch._inductor.output_code"
_FOR_ALL = "CompositeExplicitAutogradNonFunctional"
_ALLOCATE = {"empty_strided_cpu": "cpu", "empty_strided_cpu_pinned": "cpu", "empty_strided_cuda": "cuda"}

Around = Callable[[Any, Any, Callable[[], Any]], Any]


@contextlib.contextmanager
def around_calls(around: Around) -> Iterator[None]:
    """Let ``around(graph, inputs, call)`` make each call of a compiled graph in the block."""
    owner = private(_GRAPH, "CompiledFxGraph")
    original = owner.__call__

    def call(self: Any, inputs: Any) -> Any:
        return around(self, inputs, lambda: original(self, inputs))

    with replaced(owner, "__call__", call):
        yield


@contextlib.contextmanager
def lowered_graphs(take: Callable[[str, str, Mapping[str, list[Any]]], None]) -> Iterator[None]:
    """Tell of each graph that is lowered: its key, its compilation, the nodes of its buffers by name."""
    lowering = private("torch._inductor.graph", "GraphLowering")
    wrapper = private("torch._inductor.codegen.wrapper", "PythonWrapperCodegen")
    plan, finish = wrapper.run_wrapper_ir_passes, lowering.compile_to_module
    found: dict[str, list[Any]] = {}

    def planned(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = plan(self, *args, **kwargs)
        found.update(_nodes(private("torch._inductor.virtualized", "V").graph))
        return result

    def finished(self: Any, *args: Any, **kwargs: Any) -> Any:
        module = finish(self, *args, **kwargs)
        take(self.cache_key, compile_id(), dict(found))
        found.clear()
        return module

    with (
        replaced(wrapper, "run_wrapper_ir_passes", planned),
        replaced(lowering, "compile_to_module", finished),
    ):
        yield


def _nodes(graph: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield the names of buffers, and the nodes that each is computed for in the order of the graph."""
    place = {node: i for i, node in enumerate(graph.module.graph.nodes)}
    for name, buffer in graph.name_to_buffer.items():
        maker = buffer.get_defining_op() if hasattr(buffer, "get_defining_op") else None
        nodes = set(getattr(maker, "origins", ()) or ()) | set(getattr(buffer, "origins", ()) or ())
        yield name, sorted((n for n in nodes if n in place), key=place.__getitem__)


def key_of(graph: Any) -> str:
    """Return the key of a compiled graph's program."""
    return str(graph.cache_key)


def text_of(graph: Any) -> str:
    """Return the program of a compiled graph."""
    return graph.source_code or ""


def traces_of(graph: Any) -> list[tuple[int, str]]:
    """Return the lines of a program that belong to one of the user's, each with its stack."""
    return [(line, trace) for line, trace in graph.cache_linemap or () if trace]


def constants_of(graph: Any) -> dict[str, Any]:
    """Return what a program finds in its module besides what it defines."""
    found = {**(graph.constants or {}), **(getattr(graph, "torchbind_constants", None) or {})}
    return {**found, **(getattr(graph, "opaque_value_type_classes", None) or {})}


def is_backward(graph: Any) -> bool:
    """Return whether a compiled graph is a backward."""
    return bool(graph.fx_kwargs.get("is_backward"))


def is_program(graph: Any) -> Callable[[Any], bool]:
    """Return what says whether code is that of a compiled graph's program."""
    file = f"{graph.cache_key}.py"
    return lambda code: os.path.basename(code.co_filename) == file


def mark(text: str) -> None:
    """Put a mark among the events of a running profile."""
    with private("torch._C._profiler", "_RecordFunctionFast")(text):
        pass


def events(profile: Any) -> Iterator[tuple[int, Any]]:
    """Yield the events of a profile in the order of time, for one that recorded memory.

    An operator or mark is ``(time, name)``. An allocation or release on the CPU is ``(time, (bytes, address,
    operators))``, of which the last are those that it happened in, each with its time, the outermost first.
    """
    kinds = private("torch._C._profiler", "_EventType")
    pending: list[tuple[Any, tuple[Any, ...]]] = [
        (event, ()) for event in profile.profiler.kineto_results.experimental_event_tree()
    ]
    found: list[tuple[int, Any]] = []
    while pending:
        event, inside = pending.pop()
        if event.tag == kinds.Allocation:
            fields = event.extra_fields
            if fields.device.type == "cpu":
                found.append((event.start_time_ns, (fields.alloc_size, fields.ptr, inside)))
        elif event.tag == kinds.TorchOp:
            found.append((event.start_time_ns, event.name))
            inside = (*inside, (event.start_time_ns, event.name))
        pending.extend((child, inside) for child in event.children)
    yield from sorted(found, key=lambda pair: pair[0])


def weakly(tensor: Any) -> Callable[[], bool]:
    """Return what says whether the storage of a tensor is gone by then."""
    found = private("torch.multiprocessing.reductions", "StorageWeakRef")(tensor.untyped_storage())
    return lambda: bool(found.expired())


def fake_mode() -> Any:
    """Return a mode for tensors without memory, whose storages are as long as real ones.

    With its cache a second result of one shape would not have what lies behind the last element.
    """
    mode = private("torch._subclasses.fake_tensor", "FakeTensorMode")(allow_non_fake_inputs=True)
    mode.cache_enabled = False
    return mode


def as_run(operator: Any, device: str) -> Callable[..., Any]:
    """Return what runs of an operator on a device: where that has no kernel of it, the one for all devices.

    Without memory the latter is decomposed. Then a result that is like its operand, such as that of
    ``slice_scatter``, has no bytes behind its last element, where the operand's storage has some.
    """
    has, name = private("torch._C", "_dispatch_has_kernel_for_dispatch_key"), operator.name()
    if name.startswith("prim::") or has(name, device.upper()) or not has(name, _FOR_ALL):
        return cast("Callable[..., Any]", operator)
    key = getattr(private("torch._C", "DispatchKey"), _FOR_ALL)
    return functools.partial(operator._op_dk, key)


def dispatching(called: Callable[[Any, Any, Any], Any]) -> Any:
    """Return a context in which ``called(operator, args, kwargs)`` makes each call of an operator."""
    mode: Any = private("torch.utils._python_dispatch", "TorchDispatchMode")

    class Dispatching(mode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return called(func, args, kwargs or {})

    return Dispatching()


def depends_on_data(operator: Any) -> bool:
    """Return whether the sizes of what an operator returns depend on what its operands hold."""
    import torch

    return torch.Tag.dynamic_output_shape in operator.tags


def hands_on(operator: Any) -> bool:
    """Return whether an operator returns its operand, and another tensor where there is no memory."""
    return str(operator) == "_c10d_functional.wait_tensor.default"


def computes(operator: Any) -> bool:
    """Return whether an operator does more than to make room, or a view, or to ask for a device."""
    return not operator.is_view and not str(operator).startswith(("aten.empty", "prim."))


def leaves(value: Any) -> list[Any]:
    """Return what is in lists, tuples and dictionaries, in order."""
    return list(private("torch.utils._pytree", "tree_leaves")(value))


def storage_key(tensor: Any) -> int:
    """Return what tells the storage of a tensor from all others that live."""
    return int(tensor.untyped_storage()._cdata)


def loaded(
    text: str, name: str, launched: Callable[[Any], None], pooled: Callable[[Any], None]
) -> dict[str, Any]:
    """Return the names that a generated program defines, with kernels that do nothing.

    Args:
        text: the Python wrapper, as Inductor has written it.
        name: how its file is called in frames.
        launched: is told what each kernel is given.
        pooled: is told of each tensor of which parts are taken, by Inductor's memory planning.
    """
    names: dict[str, Any] = {"__name__": name}
    with replaced(private(_KERNELS), "AsyncCompile", functools.partial(_NoKernels, launched)):
        exec(compile(text, name, "exec"), names)  # it runs in any case
    for check in [found for found in names if found.startswith("assert_")]:
        names[check] = _nothing
    for allocate, device in _ALLOCATE.items():
        names[allocate] = _allocating(device)
    names["reinterpret_tensor"] = _view
    names["alloc_from_pool"] = _from_pool(pooled)
    names["extern_kernels"] = _Extern(names.get("extern_kernels"), launched)
    return names


def _allocating(device: str) -> Callable[..., Any]:
    import torch

    def empty(size: Any, stride: Any, dtype: Any) -> Any:
        return torch.empty_strided(size, stride, dtype=dtype, device=device)

    return empty


def _view(tensor: Any, size: Any, stride: Any, offset: int = 0) -> Any:
    import torch

    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


def _from_pool(pooled: Callable[[Any], None]) -> Callable[..., Any]:
    import torch

    def part(pool: Any, offset: int, dtype: Any, size: Any, stride: Any) -> Any:
        pooled(pool)
        whole = pool.nbytes // dtype.itemsize * dtype.itemsize
        flat = torch.as_strided(pool, (pool.numel(),), (1,), 0).view(torch.uint8)
        values = torch.as_strided(flat, (whole,), (1,), 0).view(dtype)
        return torch.as_strided(values, size, stride, offset // dtype.itemsize)

    return part


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


class _Nothing:
    """A kernel that does nothing, however it is launched.

    Args:
        launched: is told what it is given.
    """

    def __init__(self, launched: Callable[[Any], None]) -> None:
        self._launched = launched

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self._launched((args, kwargs))

    def __getattr__(self, name: str) -> Any:
        return self


class _NoKernels:
    """Stands in the place of Inductor's compiler of kernels.

    Args:
        launched: is told what each kernel is given.
    """

    def __init__(self, launched: Callable[[Any], None]) -> None:
        self._launched = launched

    def wait(self, names: dict[str, Any]) -> None:
        """There is nothing to wait for."""

    def __getattr__(self, name: str) -> Callable[..., _Nothing]:
        return lambda *args, **kwargs: _Nothing(self._launched)


class _Extern:
    """Calls into libraries: one that is given its result computes nothing, another one makes it.

    Args:
        kernels: those of Inductor.
        launched: is told what the first are given.
    """

    def __init__(self, kernels: Any, launched: Callable[[Any], None]) -> None:
        self._kernels = kernels
        self._launched = launched

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            if out is None:
                return getattr(self._kernels, name)(*args, **kwargs)
            self._launched((args, kwargs, out))
            return out

        return call
