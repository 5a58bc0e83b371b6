"""Compiling a reported program with our passes, by all of Inductor or up to its lowering."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._inductor.config as inductor_config
from torch._inductor.compile_fx import compile_fx
from torch.fx import Graph, Node

from pytest_reinplace.capture import graph_backend, triton_cpu
from pytest_reinplace.passes import inductor_options, observe

from .programs import Program

Compiler = Callable[..., Any]


def by_inductor(fn: Callable[..., Any], *, dynamic: bool, v2: bool = True) -> Any:
    """Compile with all of Inductor."""
    options = {**inductor_options(), "enable_auto_functionalized_v2": v2}
    return torch.compile(fn, fullgraph=True, dynamic=dynamic, options=options)


def by_graph(fn: Callable[..., Any], *, dynamic: bool, v2: bool = True) -> Any:
    """Compile up to Inductor's lowering, and interpret the graph."""
    patches = {**inductor_options(), "enable_auto_functionalized_v2": v2}
    backend = functools.partial(compile_fx, inner_compile=graph_backend.compile_graph, config_patches=patches)
    return torch.compile(fn, fullgraph=True, dynamic=dynamic, backend=backend)


def functionalized(fn: Callable[..., Any]) -> Any:
    """Return what ``fn`` means once v1 wrappers stand for its operators: each mutated argument apart."""

    def run(*args: Any) -> Any:
        torch._dynamo.reset()
        with inductor_config.patch(enable_auto_functionalized_v2=False):
            return torch.compile(fn, fullgraph=True, dynamic=False, backend="aot_eager")(*args)

    return run


@contextlib.contextmanager
def session(program: Program) -> Iterator[list[Graph]]:
    """Start without compiled code and caches; yields the graphs that our pass rewrites inside."""
    torch._dynamo.reset()
    graphs: list[Graph] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.compiler.config.patch(force_disable_caches=True))
        stack.enter_context(observe(lambda _, graph: graphs.append(graph)))
        if program.triton:
            stack.enter_context(triton_cpu.working())
        yield graphs
    torch._dynamo.reset()


def largest_copy(graph: Graph) -> int:
    """Return the bytes of the largest copy that a rewritten graph holds, 0 when there is none."""
    return max((_copied(node) for node in graph.nodes), default=0)


def _copied(node: Node) -> int:
    name = str(node.target)
    if node.op != "call_function" or name.endswith("_.default"):
        return _nbytes(node.args[0].meta["val"]) if node.target is torch.ops.aten.copy_.default else 0
    words = ("clone", "index_put", "scatter", "auto_functionalized", "triton_kernel_wrapper_functional")
    if not any(word in name for word in words) or node.meta.get("only_clone_these_tensors") == []:
        return 0
    if "_scatter" in name and getattr(node.args[0], "target", None) is torch.ops.aten.full.default:
        return 0  # computed in one kernel with what it is written into
    return _nbytes(node.meta["val"])


def _nbytes(value: Any) -> int:
    if isinstance(value, list | tuple):
        return max(map(_nbytes, value), default=0)
    if not isinstance(value, torch.Tensor):
        return 0
    return math.prod(n if isinstance(n, int) else n.node.hint for n in value.shape) * value.element_size()
