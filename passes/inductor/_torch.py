"""The seam to Inductor: every private name of it that only its own stage and the oracle need."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import torch

from .._torch import dispatching, is_lowered, private

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


def inductor_reinplacing(graph: Any) -> None:
    """Run the core of Inductor's own reinplacing on a graph."""
    with dispatching():
        private("torch._inductor.fx_passes.reinplace", "reinplace_inplaceable_ops_core")(graph)


def outputs_of_inputs() -> dict[int, int]:
    """Return which outputs of the graph that is being compiled AOTAutograd makes anew from which inputs.

    They are an input or views of one. Of a backward graph this says what its forward graph returns.

    Returns:
        By the position of the output, that of the input.
    """
    context = private("torch._guards", "TracingContext").try_get()
    meta = getattr(context, "fw_metadata", None)
    if meta is None or getattr(meta, "tokens", None):
        return {}
    infos = enumerate(meta.output_info, int(meta.num_mutated_inp_runtime_indices))
    return {
        i: int(info.base_idx)
        for i, info in infos
        if info.output_type.name in ("is_input", "alias_of_input") and info.base_idx is not None
    }


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


def digest_of_files(files: tuple[str, ...]) -> str:
    """Return a digest of the contents of files, as Inductor makes it for its cache keys."""
    digest = private("torch._inductor.custom_graph_pass", "get_hash_for_files")(files)
    return str(digest.hex() if isinstance(digest, bytes) else digest)


def outputs_of_inputs() -> frozenset[int]:
    """Return which results of the program that is being compiled AOTAutograd makes anew from an input.

    It takes the graph's output for its sizes, strides and offset alone.
    """
    found = getattr(_fw_metadata(), "output_info", ())
    return frozenset(
        i for i, info in enumerate(found) if info.output_type.name in ("alias_of_input", "is_input")
    )


def is_without_backward(graph: Any) -> bool:
    """Return whether a graph is a whole program that AOTAutograd traced for no backward, and nobody froze."""
    meta, (output,) = _fw_metadata(), graph.find_nodes(op="output")
    if meta is None or not output.meta.get("desc") or private("torch._inductor", "config").freezing:
        return False
    written = (info for info in meta.input_info if info.mutates_data)
    return not any(info.requires_grad for info in (*meta.output_info, *written))


def _fw_metadata() -> Any:
    context = private("torch._guards", "TracingContext").try_get()
    return getattr(context, "fw_metadata", None)


def results_returned(graph: Any) -> list[int | None]:
    """Return for each output of a graph which result of the program AOTAutograd says it is.

    ``None`` for other outputs, and for all where tensor subclasses are taken apart: there the parts and not
    the results are numbered.
    """
    (output,) = graph.find_nodes(op="output")
    found = output.meta.get("desc") or ()
    described = [*found, *(node.meta.get("desc") for node in graph.find_nodes(op="placeholder"))]
    if any(type(d).__name__.startswith("Subclass") for d in described):
        return [None] * len(found)
    return [d.idx if type(d).__name__ == "PlainAOTOutput" else None for d in found]
