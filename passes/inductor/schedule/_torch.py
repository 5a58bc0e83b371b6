"""The seam to Inductor's scheduler: its hooks, its operations, and what they read and write."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import sympy

from ..._torch import inductor_setting, private
from ...errors import SeamError

BEFORE_FUSION, AFTER_FUSION = "_pre_fusion_custom_pass", "_post_fusion_custom_pass"
_SCHEDULER = "torch._inductor.scheduler"
_GUARDS = "torch._guards"
_DEPENDENCIES = "torch._inductor.dependencies"
_NAMES = {
    "Scheduler": ("can_fuse",),
    "BaseSchedulerNode": ("get_nodes", "get_outputs", "is_foreach", "is_extern"),
}


def scheduler_pass() -> Any:
    """Return the base class of scheduler passes that Inductor's caches accept; one of graphs before 2.13."""
    module = importlib.import_module("torch._inductor.custom_graph_pass")
    return getattr(module, "CustomSchedulerPass", None) or private(module.__name__, "CustomGraphPass")


def missing() -> str:
    """Return what this torch lacks of what is used here, ``""`` where it lacks nothing."""
    try:
        for name in (BEFORE_FUSION, AFTER_FUSION):
            private("torch._inductor.config", name)
        for name in ("MemoryDep", "StarDep", "WeakDep"):
            private(_DEPENDENCIES, name)
        private(_GUARDS, "TracingContext")
        found = {name: private(_SCHEDULER, name) for name in _NAMES}
    except SeamError as error:
        return str(error)
    lacking = (f"{c}.{n}" for c, names in _NAMES.items() for n in names if not hasattr(found[c], n))
    return next(lacking, "")


def hook(name: str) -> Any:
    """Return the pass that runs before or after fusion, as Inductor is configured now."""
    return inductor_setting(name)


def compiling_with(around: Callable[[Any, Callable[[Any], Any]], Any], let_out: type[Exception]) -> bool:
    """Compile each graph by ``around(gm, compile_one)`` from now on; returns whether this torch can.

    Errors of the kind ``let_out`` leave Inductor as they are.
    """
    module = importlib.import_module("torch._inductor.compile_fx")
    compile_one = getattr(module, "fx_codegen_and_compile", None)
    if compile_one is None:
        return False
    if not getattr(compile_one, "is_around", False):

        @functools.wraps(compile_one)
        def compiled(gm: Any, *args: Any, **kwargs: Any) -> Any:
            return around(gm, lambda gm: compile_one(gm, *args, **kwargs))

        compiled.is_around = True  # type: ignore[attr-defined]
        module.fx_codegen_and_compile = compiled  # type: ignore[attr-defined]
    _let_out(let_out, module)  # each time: who replaces it for a while puts back the one from before
    return True


def _let_out(kind: type[Exception], module: Any) -> None:
    """Let errors of a kind out of Inductor as they are, which wraps them where it caches nothing."""
    inner = getattr(module, "_compile_fx_inner", None)
    if inner is None or getattr(inner, "lets_out", None) is kind:
        return

    @functools.wraps(inner)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        try:
            return inner(*args, **kwargs)
        except Exception as error:
            found = getattr(error, "inner_exception", None)
            if isinstance(found, kind):
                raise found from None
            raise

    compiled.lets_out = kind  # type: ignore[attr-defined]
    module._compile_fx_inner = compiled


def is_compiling() -> bool:
    """Return whether a graph is being compiled, and not only changed by hand."""
    return private(_GUARDS, "TracingContext").try_get() is not None


def shape_env() -> Any:
    """Return the ``ShapeEnv`` of the graph that is being scheduled."""
    return private("torch._inductor.virtualized", "V").graph.sizevars.shape_env


def note_written(name: str) -> None:
    """Let Inductor know that an input is written: where it copies a misaligned one, it copies that back."""
    graph = private("torch._inductor.virtualized", "V").graph
    inputs = list(graph.graph_inputs)
    if name in inputs and name not in graph.mutated_inputs:
        graph.mutated_inputs.add(name)
        graph.mutated_input_idxs.append(inputs.index(name))


def lowered() -> Any:
    """Return the FX graph that is being scheduled."""
    return private("torch._inductor.virtualized", "V").graph.module.graph


def operations(node: Any) -> Any:
    """Return the operations that a kernel, or one that is to be, runs."""
    return node.get_nodes()


def elements(node: Any) -> Any:
    """Return the kernels that run beside each other as one list, ``None`` where it is no such list."""
    return node.snodes if node.is_foreach() else None


def is_extern(node: Any) -> bool:
    """Return whether a kernel is called that Inductor does not write."""
    return bool(node.is_extern())


def reads(node: Any) -> Any:
    """Return the dependencies that an operation, or a kernel, reads or waits for."""
    return node.read_writes.reads


def writes(node: Any) -> Any:
    """Return the dependencies that an operation, or a kernel, writes."""
    return node.read_writes.writes


def outputs(node: Any) -> Any:
    """Return the buffers that an operation, or a kernel, makes: of a write, its new name."""
    return node.get_outputs()


def name(one: Any) -> str:
    """Return the name of an operation or a buffer."""
    return str(one.get_name())


def overwritten(buffer: Any) -> Any:
    """Return the names of the buffers that a buffer is another name of, since a write."""
    return buffer.get_mutations()


def viewed(buffer: Any) -> Any:
    """Return the names of the buffers in whose memory a buffer lies."""
    return buffer.get_aliases()


def buffers(node: Any) -> Any:
    """Return all buffers that operations make, by name, of the graph that an operation is of."""
    return node.scheduler.name_to_buf


def written_names(node: Any) -> Any:
    """Return the buffer behind each name that a write gave, of the graph that an operation is of."""
    return node.scheduler.mutation_real_name


def count_ancestors(node: Any) -> None:
    """Let Inductor find anew what each operation waits for, once waits were added."""
    node.scheduler.compute_ancestors()


def origins(part: Any) -> Any:
    """Return the FX nodes that a scheduled operation computes."""
    return part.node.origins


def origin(buffer: Any) -> Any:
    """Return the FX node whose value a scheduled buffer is; ``None`` where it is none's."""
    made_by = buffer.node.get_defining_op()
    return getattr(made_by, "origin_node", None)


def sizes(node: Any) -> dict[str, int]:
    """Return the bytes of each buffer that operations make; 0 of those that are another one, written."""
    found = private("torch._inductor.memory", "compute_size_for_scheduler_buffer")(buffers(node))
    return {name: int(size) for name, (_, size) in found.items()}


def bytes_of(name: str) -> int:
    """Return the bytes of a buffer that may be an input."""
    graph = private("torch._inductor.virtualized", "V").graph
    return hint(graph.get_numel(name)) * int(graph.get_dtype(name).itemsize)


def hint(number: Any) -> int:
    """Return what a number that may be symbolic is, in the call that is compiled for; 0 if nobody knows."""
    return int(
        private("torch._inductor.virtualized", "V").graph.sizevars.optimization_hint(number, fallback=0)
    )


def returned() -> list[str]:
    """Return the names of the buffers that the graph returns."""
    return list(private("torch._inductor.virtualized", "V").graph.get_output_names())


def part(buffer: Any) -> tuple[Any, Sequence[Any], Sequence[Any]] | None:
    """Return where a buffer lies in the one that it is a part of: the first element, sizes and strides.

    ``None`` where it is no part of another one, as those are that are concatenated.
    """
    view = getattr(getattr(buffer.node, "layout", None), "view", None)
    if view is None:
        return None
    layout = view.get_layout()
    return layout.offset, layout.size, layout.stride


def maker(buffer: Any) -> Any:
    """Return the operation that makes a buffer."""
    return buffer.defining_op


def symbols_made(part: Any) -> Any:
    """Return the unbacked symbols of which an operation finds the values."""
    return part.node.get_unbacked_symbol_defs()


def hinted(dep: Any) -> tuple[int, int]:
    """Return how many elements a dependency names, and their bytes, in the call that is compiled for."""
    return int(dep.numel_hint()), int(dep.numbytes_hint())


def does_nothing(node: Any) -> bool:
    """Return whether an operation only stands for memory that others fill."""
    return isinstance(node, private(_SCHEDULER, "NopKernelSchedulerNode"))


def is_on_cpu(node: Any) -> bool:
    """Return whether a CPU runs an operation."""
    device = node.get_device()
    return device is not None and device.type == "cpu"


def is_loop_on_cpu(node: Any) -> bool:
    """Return whether Inductor writes a loop for an operation, in C++."""
    return is_on_cpu(node) and not (does_nothing(node) or is_extern(node) or node.is_template())


def is_order_only(dep: Any) -> bool:
    """Return whether a dependency reads nothing, and only says what goes before."""
    return isinstance(dep, private(_DEPENDENCIES, "WeakDep"))


def wait_for(part: Any, buffer: str) -> None:
    """Let an operation come after the one that makes a buffer, be it by a write, as Inductor counts."""
    dep = private(_DEPENDENCIES, "WeakDep")(buffer, buffer, is_fake=True)  # the buffer lives no longer for it
    unmet = {*part.unmet_dependencies, dep}
    part.add_fake_dep(dep)
    part.unmet_dependencies = unmet  # which it makes anew of all that it reads, inputs too


def forgotten_symbols(part: Any) -> set[Any]:
    """Return the unbacked symbols that a call outside of kernels computes with, and does not say so."""
    if not is_extern(part):
        return set()
    numbers = [n for n in vars(part.node).values() if isinstance(n, sympy.Expr)]
    used = set().union(*(n.free_symbols for n in numbers)) - symbols_made(part)
    return used - part.node.get_free_symbol_uses(unbacked_only=True) if used else set()


def sources(part: Any) -> Any:
    """Return the calls whose results an operation takes apart, or names."""
    is_part = isinstance(part.node, private("torch._inductor.ir", "MultiOutput"))
    return part.node.inputs if is_part else ()


def names_operand(part: Any) -> bool:
    """Return whether a program names what a call returns, which is what the call wrote, to take it apart.

    From torch 2.15 on such names are deleted, and are no name of the operand to Inductor. A call whose result
    is one tensor is read by its own name, and not by that of a part: it keeps it.
    """
    fallback = private("torch._inductor.ir", "FallbackKernel")
    apart = private("torch._inductor.ir", "MultiOutputLayout")
    is_apart = isinstance(part.node, fallback) and isinstance(part.node.layout, apart)
    return is_apart and bool(part.node.get_mutation_names())


def forget_result(part: Any) -> None:
    """Let Inductor take a call for one that returns nothing."""
    part.node.layout = private("torch._inductor.ir", "NoneLayout")(device=part.node.get_device())


def fuse_only_if(may: Callable[[Any, Any], bool], node: Any) -> None:
    """Ask before two operations are fused, of the graph that an operation is of, where Inductor would."""
    scheduler = node.scheduler
    inductors = scheduler.can_fuse

    @functools.wraps(inductors)
    def can_fuse(one: Any, two: Any, *args: Any, **kwargs: Any) -> bool:
        return inductors(one, two, *args, **kwargs) and may(one, two)

    scheduler.can_fuse = can_fuse


def keep_order(part: Any) -> None:
    """Let an operation come after the same ones as before when its loops are computed anew.

    To put loops into one kernel on a CPU, Inductor computes what they read anew, from which the writes that
    they wait for cannot be told.
    """
    compute = getattr(part, "recompute_size_and_body", None)
    if compute is None:  # what has no loops
        return
    names = ("WeakDep", "StarDep")  # asked for here, where an error costs the watch and not the compile
    kinds: Any = tuple(private(_DEPENDENCIES, name) for name in names)

    def recompute(*args: Any, **kwargs: Any) -> None:
        waits = [dep for dep in reads(part) if isinstance(dep, kinds)]
        compute(*args, **kwargs)
        found = part.read_writes
        for dep in waits:
            found = found.with_read(dep)
        part.set_read_writes(found.rename(part.mutation_renames))

    part.recompute_size_and_body = recompute


def is_whole(dep: Any) -> bool:
    """Return whether a dependency names a buffer and no elements of it."""
    return isinstance(dep, private(_DEPENDENCIES, "StarDep"))


def is_known(dep: Any) -> bool:
    """Return whether the elements that a dependency names are known when the program is compiled."""
    return isinstance(dep, private(_DEPENDENCIES, "MemoryDep")) and not dep.is_indirect()


def names_elements(dep: Any) -> bool:
    """Return whether a dependency names elements of a buffer, be it by what data tell."""
    return isinstance(dep, private(_DEPENDENCIES, "MemoryDep"))


def told_by_data(dep: Any) -> list[Any]:
    """Return the symbols that stand for numbers which an operation reads to find its elements."""
    is_read = private(_DEPENDENCIES, "is_indirect")
    return [symbol for symbol in dep.index.free_symbols if is_read(symbol.name)]


def extent(name: str) -> Any:
    """Return how many elements there are from where a buffer begins to its last one."""
    buffer = private("torch._inductor.virtualized", "V").graph.get_buffer(name)
    return buffer.get_layout().storage_size()


def affine(dep: Any, *others: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """Return the first index of a dependency and its stride per loop, ``None`` where it is no such sum.

    Args:
        dep: the dependency.
        others: symbols beside the loops' of which there is a stride, too.
    """
    index, symbols = sympy.expand(dep.index), (*dep.var_names, *others)
    strides = tuple(index.coeff(v, 1) for v in symbols)
    first = sympy.expand(index - sum(s * v for s, v in zip(strides, symbols, strict=True)))
    is_sum = set(symbols).isdisjoint(set().union(first.free_symbols, *(s.free_symbols for s in strides)))
    return (first, strides) if is_sum else None
