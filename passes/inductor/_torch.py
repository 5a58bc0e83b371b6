"""The seam to Inductor: every private name of it that only its own stage and the oracle need."""

from __future__ import annotations

import functools
import importlib
import inspect
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from .._torch import behind_subclasses, dispatching, is_lowered, private

_REGENERATED = ("is_input", "alias_of_input")
_REINPLACE_STEPS = (
    *("canonicalize_view_scatter_ops", "reinplace_inplaceable_ops_core", "decompose_generalized_scatter"),
    *("_generalized_scatter", "_decompose_scatter_functional"),
)


def lowered_graph(module: Any, fake_mode: Any, given: torch.Tensor) -> Any:
    """Return what Inductor lowers the first result of a module to, for a fake input."""
    graph = private("torch._inductor.graph", "GraphLowering")(module, [given], fake_mode.shape_env)
    with private("torch._inductor.virtualized", "V").set_graph_handler(graph), inductor_fake_mode(fake_mode):
        graph.run(given)
        return graph.graph_outputs[0]


def call_kernel_of(op: Any) -> None:
    """Let Inductor call an operator's own kernel, on tensors as the graph lays them out."""
    if not is_lowered(op):
        strides = private("torch._inductor.lowering", "constrain_to_fx_strides")
        make = private("torch._inductor.lowering", "make_fallback")
        make(op, layout_constraint=strides, warn=False, override_decomp=True)


def registered_operators() -> dict[str, set[str]]:
    """Return the operators that are registered now, each with the arguments of all its overloads."""
    found: dict[str, set[str]] = {}
    for schema in private("torch._C", "_jit_get_all_schemas")():
        found.setdefault(schema.name, set()).update(argument.name for argument in schema.arguments)
    return found


@functools.cache
def slices_count_from_storage() -> bool:
    """Return whether v2 wrappers count slices from the start of the storage instead of from their base."""
    module = importlib.import_module("torch._higher_order_ops.auto_functionalize")
    encode = getattr(module, "try_use_slice", None)
    base = torch.empty(8)[4:]
    return encode is not None and bool(encode(base, base[1:3]) == (0, 5, 7))


def inductor_reinplacing(graph: Any) -> None:
    """Run the core of Inductor's own reinplacing on a graph."""
    with dispatching():
        private("torch._inductor.fx_passes.reinplace", "reinplace_inplaceable_ops_core")(graph)


def inductor_stage(graph: Any) -> None:
    """Run Inductor's own reinplacing stage on a graph, whole."""
    updater = fake_tensor_updater(graph.owning_module)
    private("torch._inductor.fx_passes.reinplace", "reinplace_inplaceable_ops")(updater, graph)
    dtype_views = inductor_step("fix_auto_functionalized_dtype_views")
    if dtype_views is not None:
        dtype_views(graph)


def inductor_step(name: str) -> Any:
    """Return one step of Inductor's reinplacing stage, a function over a graph, by its name.

    ``fix_auto_functionalized_dtype_views`` is ``None`` before torch 2.13, which has no such step.
    """
    module = "reinplace" if name in _REINPLACE_STEPS else "post_grad"
    if name == "fix_auto_functionalized_dtype_views":
        return getattr(importlib.import_module("torch._inductor.fx_passes.post_grad"), name, None)
    return private(f"torch._inductor.fx_passes.{module}", name)


def fake_tensor_updater(gm: torch.fx.GraphModule) -> Any:
    """Return Inductor's updater of fake values, which remembers the graph as it is now."""
    updater = private("torch._inductor.fx_utils", "FakeTensorUpdater")
    return updater(gm if "gm" in inspect.signature(updater).parameters else gm.graph)


def inductor_fake_mode(fake_mode: Any) -> Any:
    """Return the context in which Inductor's passes find their fake mode."""
    return private("torch._inductor.virtualized", "V").set_fake_mode(fake_mode)


def custom_graph_pass() -> Any:
    """Return the base class of Inductor's custom graph passes."""
    return private("torch._inductor.custom_graph_pass", "CustomGraphPass")


def regenerated_outputs(graph: Any) -> dict[int, int]:
    """Return which outputs of a graph AOTAutograd makes anew from an input, for what they are: views of it.

    It takes the output for its sizes, strides and offset alone. Nothing is said where tensor subclasses are
    taken apart: there the parts and not the results are numbered.

    Returns:
        By the position of the output, that of the input.
    """
    (output,) = graph.find_nodes(op="output")
    found = output.meta.get("desc") or ()
    described = [*found, *(node.meta.get("desc") for node in graph.find_nodes(op="placeholder"))]
    if any(type(d).__name__.startswith("Subclass") for d in described):
        return {}
    results = getattr(_fw_metadata(), "output_info", ())
    outputs = ((i, d.idx) for i, d in enumerate(found) if type(d).__name__ == "PlainAOTOutput")
    infos = ((i, results[n]) for i, n in outputs if n < len(results))
    return {i: int(info.base_idx) for i, info in infos if info.output_type.name in _REGENERATED}


def ask_strides(output: Node, index: int, strides: Sequence[Any]) -> None:
    """Ask Inductor for other strides of an output than it wrote down of the graph, lest it copy for those."""
    asked = list(output.meta.get("original_output_strides") or ())
    if index < len(asked):
        asked[index] = tuple(strides)
        output.meta["original_output_strides"] = asked


def outputs_by_taker(graph: Any) -> tuple[set[Node], set[Node]]:
    """Return the outputs of a graph that its backward graph takes, and those that its caller does.

    Both are empty where AOTAutograd has not made the graph, and where it is a backward graph itself.
    """
    (output,) = graph.find_nodes(op="output")
    saved, results = set[Node](), set[Node]()
    leaves = output.args[0] if isinstance(output.args[0], list | tuple) else ()
    for leaf, origin in zip(leaves, output.meta.get("desc") or (), strict=False):
        origin = behind_subclasses(origin)
        if isinstance(leaf, Node) and type(origin).__name__ != "GradAOTOutput":
            (saved if type(origin).__name__.startswith("SavedForBackwards") else results).add(leaf)
    return saved - results, results


def takes_program_inputs(graph: Any) -> bool:
    """Return whether AOTAutograd gives a graph the inputs of a program.

    A backward graph is given what the forward saved, and gradients, which may be views of one another.
    """
    described = (behind_subclasses(n.meta.get("desc")) for n in graph.find_nodes(op="placeholder"))
    return all(one is not None and type(one).__name__ != "TangentAOTInput" for one in described)


def captures_graphs() -> bool:
    """Return whether the parts of a graph that run on a GPU are captured as CUDA graphs."""
    config = private("torch._inductor", "config")
    return bool(config.triton.cudagraphs and config.graph_partition)


def is_inference() -> bool:
    """Return whether AOTAutograd is compiling a graph without a backward; not where it is not compiling."""
    return "inference" in private("torch._functorch.aot_autograd", "get_aot_graph_name")()


def graph_break() -> tuple[str, int] | None:
    """Return file and line of the graph break at which the graph ends that is being compiled, if it does."""
    tx = getattr(private("torch._dynamo.symbolic_convert", "tls"), "current_tx", None)
    reason = getattr(getattr(tx, "output", None), "compile_subgraph_reason", None)
    frames = getattr(reason, "user_stack", None)
    if not frames or not getattr(reason, "graph_break", False):
        return None
    return str(frames[-1].filename), int(frames[-1].lineno or 0)


def told_of_results() -> tuple[Any, ...]:
    """Return what AOTAutograd knows of a program, decisions go by, and the text of its graph does not say."""
    found = getattr(_fw_metadata(), "output_info", ())
    return tuple((info.output_type.name, info.base_idx) for info in found)


def tell_begins(begins: tuple[tuple[int, str], ...]) -> None:
    """Note where inputs of the program that is being compiled begin, for ``told_of_begins``."""
    context = _tracing_context()
    if context is not None:
        _begins[context] = begins


def told_of_begins() -> tuple[tuple[int, str], ...]:
    """Return where inputs begin, which offsets in a graph count with, and Inductor's cache keys do not say.

    Returns:
        By the number of the input, the number of elements before it; nothing of those that begin at 0.
    """
    context = _tracing_context()
    return () if context is None else _begins.get(context, ())


_begins: weakref.WeakKeyDictionary[Any, tuple[tuple[int, str], ...]] = weakref.WeakKeyDictionary()


def _tracing_context() -> Any:
    return private("torch._guards", "TracingContext").try_get()


def _fw_metadata() -> Any:
    return getattr(_tracing_context(), "fw_metadata", None)
