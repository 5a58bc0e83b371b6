"""The seam to the private names of torch that run the joint and post-grad stages alone."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from pytest_reinplace.passes._torch import private

_FX = "torch._inductor.compile_fx"
Note = Callable[[str, GraphModule, float], None]


@contextlib.contextmanager
def configured(options: Mapping[str, Any]) -> Iterator[None]:
    """Set options of Inductor's for the block."""
    with private("torch._inductor", "config").patch({**options, "force_disable_caches": True}):
        yield


def backend(note: Note) -> Callable[..., Any]:
    """Return a compiler for ``torch.compile`` that runs the two stages, and graphs as they were before.

    Args:
        note: is told the stage, the graph that left it and the CPU seconds that it took.
    """
    compile_fx = private(_FX, "compile_fx")
    joint = private(_FX, "_recursive_joint_graph_passes")

    def timed(gm: GraphModule, *args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        result = joint(gm, *args, **kwargs)
        note("joint", gm, time.process_time() - start)
        return result

    def inner(gm: GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Any:
        kept = copy.deepcopy(gm)
        seconds = post_grad(gm, inputs, is_inference=bool(kwargs.get("is_inference")))
        note("backward" if kwargs.get("is_backward") else "forward", gm, seconds)

        def run(args: list[Any]) -> Any:
            return kept(*args)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    def compiled(gm: GraphModule, inputs: Sequence[Any]) -> Any:
        module = private("torch._inductor", "compile_fx")
        module._recursive_joint_graph_passes = timed
        try:
            return compile_fx(gm, inputs, inner_compile=inner)
        finally:
            module._recursive_joint_graph_passes = joint

    return compiled


def post_grad(gm: GraphModule, inputs: Sequence[Any], *, is_inference: bool) -> float:
    """Run the post-grad stage over a graph; returns the CPU seconds that it took."""
    mode = private("torch._dynamo.utils", "detect_fake_mode")(inputs)
    private(_FX, "view_to_reshape")(gm)
    with private("torch._inductor.virtualized", "V").set_fake_mode(mode), torch.no_grad():
        start = time.process_time()
        private(_FX, "_recursive_post_grad_passes")(gm, is_inference=is_inference)
        return time.process_time() - start
