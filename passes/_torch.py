"""The seam to torch: private names that several rooms use; a room's own seam asks ``private`` for the others.

A name is resolved when it is first needed, so that a torch without it still serves the parts that do
not need it; a missing name raises :class:`SeamError` naming it and the torch version.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from .errors import SeamError

if TYPE_CHECKING:
    from torch._inductor.custom_graph_pass import CustomGraphPass as CustomGraphPass


@functools.cache
def private(module: str, name: str) -> Any:
    """Return ``module.name``; raises :class:`SeamError` when this torch does not have it."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SeamError(
            f"expected {module}.{name} in torch {torch.__version__}, found none ({error}); "
            "pytest-reinplace supports torch 2.11 to 2.15"
        ) from error


def hop(name: str) -> Any:
    """Return the higher-order operator ``torch.ops.higher_order.<name>``, or ``None`` where it is unknown."""
    try:
        return _known_hop(name)
    except (AttributeError, SeamError):  # not kept: torch makes some operators when their module is imported
        return None


@functools.cache
def _known_hop(name: str) -> Any:
    if name.startswith("triton_kernel_wrapper"):
        return private("torch._higher_order_ops.triton_kernel_wrap", name)
    if name.startswith("auto_functionalized"):
        return private("torch._higher_order_ops.auto_functionalize", name)
    return getattr(torch.ops.higher_order, name)


def lazy_graph_module(root: Any, graph: Any) -> Any:
    """Return a graph module that writes its code when it is first called."""
    return private("torch.fx._lazy_graph_module", "_LazyGraphModule")(root, graph)


@functools.cache
def op_overload() -> Any:
    """Return the class of operators with a schema."""
    return private("torch._ops", "OpOverload")


def collective(name: str) -> Any:
    """Return an asynchronous collective as graphs hold it, with its fake implementation in place."""
    importlib.import_module("torch.distributed._functional_collectives")
    packet = getattr(torch.ops._c10d_functional, name, None)
    if packet is None:
        raise SeamError(
            f"expected torch.ops._c10d_functional.{name} in torch {torch.__version__}, found none; "
            "it needs a torch that was built with torch.distributed"
        )
    return packet.default


def has_effect(op: Any) -> bool:
    """Return whether an operator was registered as one with an effect, which keeps its order."""
    return private("torch._higher_order_ops.effects", "_get_effect")(op) is not None


def registering_file(qualname: str) -> str | None:
    """Return the file that registers an operator of a user's; ``None`` where it cannot be told."""
    known = private("torch._library.custom_ops", "OPDEFS").get(qualname)
    code = getattr(getattr(known, "_init_fn", None), "__code__", None)
    if code is not None:
        return str(code.co_filename)
    entry = private("torch._library.simple_registry", "singleton").find(qualname)
    kernel = getattr(getattr(entry, "fake_impl", None), "kernel", None)
    return str(getattr(kernel, "source", "")).rpartition(":")[0] or None


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Run what is inside without the dispatch modes, autocast and gradients that are on outside."""
    disabled = private("torch.utils._python_dispatch", "_disable_current_modes")
    no_autocast = private("torch._C", "_DisableAutocast")
    no_functions = private("torch._C", "DisableTorchFunction")
    with disabled(), no_autocast(), no_functions(), torch.no_grad():
        yield


def op_overload_packet() -> Any:
    """Return the class of operators before an overload is chosen."""
    return private("torch._ops", "OpOverloadPacket")


def higher_order_operator() -> Any:
    """Return the class of higher-order operators."""
    return private("torch._ops", "HigherOrderOperator")


def is_lowered(op: Any) -> bool:
    """Return whether Inductor has a lowering for an operator."""
    return op in private("torch._inductor.lowering", "lowerings")


def is_lowered_as_list(op: Any) -> bool:
    """Return whether Inductor computes an operator over lists itself, in one kernel with others like it."""
    return op in private("torch._inductor.lowering", "foreach_ops")


def is_fallback(op: Any) -> bool:
    """Return whether Inductor's lowering of an operator calls the operator's own kernel."""
    lowering = private("torch._inductor.lowering", "lowerings").get(op)
    return bool(getattr(lowering, "_is_fallback_handler", False))


def has_unsupported_type(node: Any) -> bool:
    """Return whether Inductor calls the kernel of an operator since a number is complex, or as rare."""
    return bool(private("torch._inductor.lowering", "fallback_node_due_to_unsupported_type")(node))


def takes_memory(op: Any) -> bool:
    """Return whether Inductor's lowering of an operator needs its operands in memory."""
    return op in private("torch._inductor.lowering", "needs_realized_inputs")


def inductor_setting(name: str) -> Any:
    """Return one of Inductor's settings, ``None`` where this torch has none of that name."""
    return getattr(private("torch._inductor", "config"), name, None)


def storage_key(tensor: torch.Tensor) -> int | None:
    """Return an identity of the tensor's storage, ``None`` for tensors without one."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return None


def is_real_view(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a view, of real numbers, of a complex one."""
    base = tensor._base
    return base is not None and base.is_complex() and not tensor.is_complex()


def fake_mode_of(values: Iterable[Any]) -> Any:
    """Return the FakeTensorMode of the first fake tensor in ``values``, or ``None``."""
    fake_tensor = private("torch._subclasses.fake_tensor", "FakeTensor")
    for value in values:
        if isinstance(value, fake_tensor):
            return value.fake_mode
    return None


def stored_afterwards(graph: Any) -> set[Any]:
    """Return the inputs that AOTAutograd writes when a graph has ended, with what it returns for them."""
    described = map(behind_subclasses, graph.output_node().meta.get("desc") or ())
    stored = {one.mutated_input for one in described if type(one).__name__ == "InputMutationAOTOutput"}
    given = graph.find_nodes(op="placeholder")
    return {node for node in given if behind_subclasses(node.meta.get("desc")) in stored}


def behind_subclasses(described: Any) -> Any:
    """Return what AOTAutograd says of a tensor of a subclass, given what it says of one of its parts."""
    while type(described).__name__.startswith("Subclass"):
        described = described.base
    return described


def dispatching() -> Any:
    """Return the context in which decompositions of symbolic shapes run."""
    return private("torch._dispatch.python", "enable_python_dispatcher")()


def give(node: torch.fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Give a node its arguments.

    The public setters take a node out of its graph's table and put it back, each of them, which costs more
    than making it; a torch without what they call in between is left to them.
    """
    update = getattr(node, "_update_args_kwargs", None)
    if update is not None:
        update(args, kwargs)
    else:
        node.args, node.kwargs = args, kwargs


def name_for(graph: torch.fx.Graph, target: Any) -> str | None:
    """Return the name that a graph would number for its nodes of a target; ``None``: let it find one."""
    find = getattr(graph, "_target_to_str", None)
    return None if find is None else str(find(target))


def triton_kernel_name(kernel_idx: int) -> str:
    """Return the name of a user Triton kernel from its index in the side table."""
    table = private("torch._higher_order_ops.triton_kernel_wrap", "kernel_side_table")
    kernel = table.get_kernel(kernel_idx)
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return str(getattr(kernel, "__name__", f"triton_kernel_{kernel_idx}"))


def unsafe_index_put_() -> Any:
    """Return the in-place form of ``aten._unsafe_index_put`` that Inductor lowers."""
    return private("torch._inductor.inductor_prims", "_unsafe_index_put_")


def run_fake(fake_mode: Any, target: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator on fake values without leaving fresh symbols behind."""
    if fake_mode is None:
        with torch.no_grad():
            return target(*args, **kwargs)
    with fake_mode, dispatching(), _no_fresh_symbols(fake_mode.shape_env), torch.no_grad():
        return target(*args, **kwargs)


def _no_fresh_symbols(shape_env: Any) -> Any:
    return shape_env.ignore_fresh_unbacked_symbols() if shape_env else contextlib.nullcontext()


@contextlib.contextmanager
def untouched(shape_env: Any) -> Iterator[None]:
    """Leave no fresh symbol of data behind inside, and add no guard: what asks for one raises."""
    if shape_env is None:
        yield
        return
    with _no_fresh_symbols(shape_env), _without_guards(shape_env):
        yield


@contextlib.contextmanager
def _without_guards(shape_env: Any) -> Iterator[None]:
    """Let whoever would add a guard raise, by what is asked before one is added."""

    def refuse(expr: Any, value: Any) -> None:
        if not shape_env._suppress_guards_tls():
            raise RuntimeError(f"a guard would be needed: {expr} == {value}")

    known = vars(shape_env).get("_check_frozen")
    shape_env._check_frozen = refuse
    try:
        yield
    finally:
        if known is None:
            del shape_env._check_frozen
        else:
            shape_env._check_frozen = known


def run_by_hints(fake_mode: Any, target: Any, args: Any) -> Any:
    """Run an operator on fake values that checks sizes, and whose result does not depend on the answers."""
    shape_env = getattr(fake_mode, "shape_env", None)
    with shape_env.suppress_guards() if shape_env else contextlib.nullcontext():
        return run_fake(fake_mode, target, args, {})


@contextlib.contextmanager
def expecting_refusal() -> Iterator[None]:
    """Keep torch from logging an error for a fake run that is allowed to fail."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    was, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was


def unbacked_bindings(fake_mode: Any, value: Any) -> Any:
    """Return the data-dependent symbols that a fresh fake value binds, ``None`` without any."""
    shape_env = getattr(fake_mode, "shape_env", None)
    if shape_env is None:
        return None
    compute = private("torch.fx.experimental.symbolic_shapes", "compute_unbacked_bindings")
    return compute(shape_env, value)


def bindings_of(value: Any, symbols: Iterable[Any]) -> Any:
    """Return where in a value some data-dependent symbols stand, in the form of ``unbacked_bindings``."""
    find = private("torch.fx.experimental.symbolic_shapes", "_free_unbacked_symbols_with_path")
    return find(value, (), pending=set(symbols), simplify=True)


def short_traceback() -> Any:
    """Return the base class of errors that torch.compile raises as they are, without its own frames."""
    return private("torch._dynamo.exc", "ShortenTraceback")


def new_fake_mode() -> Any:
    """Return a mode in which operators run on shapes alone, each time anew.

    What torch answers from its cache begins at offset 0, and is no alias of the operand: such a mode would
    say something else of the same call, depending on what was asked before.
    """
    mode = private("torch._subclasses.fake_tensor", "FakeTensorMode")()
    mode.cache_enabled = False
    return mode


def is_fake_of(tensor: Any, fake_mode: Any) -> bool:
    """Return whether a tensor is a plain fake tensor of this mode."""
    fake_tensor = private("torch._subclasses.fake_tensor", "FakeTensor")
    return type(tensor) is fake_tensor and tensor.fake_mode is fake_mode


def meta_on_storage(base: torch.Tensor, layout: Any) -> torch.Tensor:
    """Return a meta tensor of given sizes, strides and offset, in elements, on the storage of a fake one."""
    sizes, strides, offset = layout
    with private("torch._C", "_DisableTorchDispatch")():  # a fake mode may be on
        view = torch.empty(0, dtype=base.dtype, device="meta")
        return view.set_(base.untyped_storage(), offset, sizes, strides)


def meta_like(base: torch.Tensor) -> torch.Tensor:
    """Return a meta tensor of the dtype, sizes and strides of another one."""
    with private("torch._C", "_DisableTorchDispatch")():
        return torch.empty_strided(base.size(), base.stride(), dtype=base.dtype, device="meta")


def faked(fake_mode: Any, meta: torch.Tensor, device: torch.device) -> Any:
    """Return a fake tensor of a mode that pretends to be a meta tensor on a device."""
    return private("torch._subclasses.fake_tensor", "FakeTensor")(fake_mode, meta, device)


def faked_as(pattern: torch.Tensor, meta: torch.Tensor) -> Any:
    """Return a fake tensor on the storage of others, in the state of one that was just made.

    It takes a sixth of the time: what its class does for each is to find out the same device, to set the
    same twenty attributes, and to mark the storage, which those that have it did.
    """
    make = private("torch", "Tensor")._make_subclass
    fake = make(type(pattern), meta, False, dispatch_device=True, device_for_backend_keys=pattern.device)
    fake.__dict__.update(pattern.__dict__)
    return fake
